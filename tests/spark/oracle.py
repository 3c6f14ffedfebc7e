"""The report's truth in plain Python: slow, obvious, and sharing nothing with the job but the row.

It has its own words for every rule; the SQL text of the rules table is never read here.
"""

from collections import defaultdict
from collections.abc import Iterable
from math import ceil

import msgspec

from spark.schema import EventRow

SECOND = 1_000_000
LIES = {"header_disagrees", "foreign_source", "bad_payload", "not_an_event"}
STEPS = {"task_accept", "task_update", "task_complete", "task_failed"}
DELIVERABLE = {"message", "reply", "task_create"} | STEPS


class Life(msgspec.Struct):
    """One root event. Times are in microseconds."""

    kind: str
    from_node: str
    to_node: str | None
    state: str
    attempts: int
    outcome: str | None
    created: int | None = None
    accepted: int | None = None
    engaged: int | None = None
    processed: int | None = None
    replied: int | None = None
    dead: int | None = None
    hops: int | None = None
    task: str | None = None
    eta: int | None = None
    taken_on: int | None = None
    progress: int | None = None
    completed: int | None = None
    failed: int | None = None
    error_class: str | None = None
    within: int | None = None
    misses: int = 0
    engaged_nodes: tuple[str, ...] = ()
    answered: bool = False
    first_answer: int | None = None
    capability: str | None = None
    versions: tuple[str | None, ...] = ()
    """Requested, resolved, of the delegation skill, of the executor skill."""


Incidents = set[tuple[str, str, int | None, int | None]]
"""Class, subject, opened and closed in microseconds."""


def flags(row: EventRow) -> set[str]:
    return set(row.flags.split(",")) if row.flags else set()


def lives(rows: Iterable[EventRow], nodes: Iterable[str]) -> dict[str, Life]:
    about: dict[str, list[EventRow]] = defaultdict(list)
    everyone = set(nodes)
    for row in rows:
        if flags(row) & LIES:
            continue
        if row.kind in DELIVERABLE or row.kind in {"ack", "dead_letter"}:
            about[row.root_id].append(row)
        if row.kind in STEPS or row.kind == "reply":
            about[row.corr_id].append(row)
    found = {}
    for root, events in about.items():
        addressed = _addressed(root, events)
        for node in addressed or [None]:
            life = _life(root, events, everyone, node)
            if life is not None:
                found[root if node is None else f"{root}@{node}"] = life
    return found


def _addressed(root: str, events: list[EventRow]) -> list[str]:
    """The nodes of a message that names no single agent: each of them is a delivery of its own."""
    return sorted(
        {
            node
            for e in events
            if e.kind == "message" and e.root_id == root and e.to_agent_id is None
            and e.to_nodes not in {None, "", "*"}
            for node in e.to_nodes.split(",")
        }
    )  # fmt: skip


def _time(row: EventRow) -> int | None:
    return None if "created_at" in flags(row) else row.created_at


def _first(times: Iterable[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)


def _since(time: int | None, least: int | None) -> int | None:
    return time if time is not None and least is not None and time >= least else None


def _last(times: Iterable[int | None]) -> int | None:
    return max((time for time in times if time is not None), default=None)


def _greatest(names: Iterable[str | None]) -> str | None:
    return max((name for name in names if name is not None), default=None)


def _routed(roots: list[EventRow], everyone: set[str]) -> set[str]:
    routed: set[str] = set()
    for root in roots:
        routed |= everyone if root.to_nodes == "*" else set((root.to_nodes or "").split(","))
    return routed


def _life(root: str, events: list[EventRow], everyone: set[str], only: str | None) -> Life | None:
    """Of a root, or of its delivery to one node of several."""
    roots = [e for e in events if e.kind in DELIVERABLE and e.root_id == root]
    if not roots:
        return None
    routed = _routed(roots, everyone) if only is None else {only}
    heard = [e for e in events if e.source_node_id in routed]
    acks = [e for e in heard if e.kind == "ack"]
    refused = [e for e in acks if e.outcome == "refused"]
    accepted = [e for e in acks if e.status == "accepted" and e not in refused]
    processed = [e for e in acks if e.status == "processed" and e not in refused]
    answers = [e for e in heard if e.corr_id == root and (e.kind in STEPS or e.kind == "reply")]
    step = {kind: [e for e in answers if e.kind == kind] for kind in (*STEPS, "reply")}
    homes = {e.source_node_id for e in roots}
    dead = [e for e in events if e.kind == "dead_letter" and e.source_node_id in homes]
    if only is not None:
        dead = [e for e in dead if e.to_nodes == only]
    last = max(
        (e for e in roots if only is None or only in (e.to_nodes or "").split(",")),
        key=lambda e: (e.attempt, e.to_nodes),
    )
    attempts = max([last.attempt, *(e.attempts for e in dead)])
    earliest = min(accepted, key=lambda e: (_time(e) or 0, e.source_node_id), default=None)
    outcomes = {e.outcome for e in processed}
    working = [e for e in answers if e.kind in STEPS]
    return Life(
        kind=last.kind,
        from_node=max(homes),
        to_node=only or _to_node(earliest, last),
        state=_state(dead, answers, processed, accepted, bool(refused) or attempts > 1),
        attempts=attempts,
        outcome="ok" if "ok" in outcomes else "failed" if "failed" in outcomes else None,
        created=_first(map(_time, roots)),
        accepted=_first(map(_time, accepted)),
        engaged=_first(e.engaged_at for e in processed),
        processed=_first(map(_time, processed)),
        replied=_first(map(_time, step["reply"])),
        dead=_first(map(_time, dead)),
        hops=last.hops,
        task=_task(step) if last.kind == "task_create" else None,
        eta=_last(e.eta_at for e in [*accepted, *working]),
        taken_on=_first(map(_time, step["task_accept"])),
        progress=_last(map(_time, [*step["task_accept"], *step["task_update"]])),
        completed=_first(map(_time, step["task_complete"])),
        failed=_first(map(_time, step["task_failed"])),
        error_class=_greatest(e.error_class for e in step["task_failed"]),
        within=last.accept_within_ms,
        misses=len({(e.source_node_id, e.epoch, e.seq) for e in refused if e.error == "not_owner"}),
        engaged_nodes=tuple(sorted({e.source_node_id for e in processed if e.engaged_at is not None})),
        answered=bool(answers),
        first_answer=_first(map(_time, answers)),
        capability=last.capability_id,
        versions=(
            last.version if last.kind == "task_create" else None,
            _greatest(e.version for e in working),
            last.skill_version if last.kind == "task_create" else None,
            _greatest(e.skill_version for e in working),
        ),
    )


def _to_node(earliest: EventRow | None, last: EventRow) -> str | None:
    return earliest.source_node_id if earliest else (last.to_nodes or "").replace("*", "") or None


def _state(dead: list, answers: list, processed: list, accepted: list, retried: bool) -> str:
    found = [("dead_letter", dead), ("replied", answers), ("processed", processed), ("accepted", accepted)]
    return next((name for name, rows in found if rows), "retry_pending" if retried else "emitted")


def _task(step: dict[str, list[EventRow]]) -> str:
    ends = [("failed", "task_failed"), ("completed", "task_complete"), ("working", "task_update")]
    return next((name for name, kind in ends if step[kind]), "accepted" if step["task_accept"] else "created")


def incidents(found: dict[str, Life], as_of: int, accept: int, process: dict[str, int]) -> Incidents:
    """What messages and tasks show. All times in microseconds; ``process`` by kind."""
    hits: Incidents = set()
    for root, life in found.items():
        hits |= {
            (name, root, opened, closed) for name, opened, closed in _broken(life, as_of, accept, process)
        }
    return hits


def _broken(life: Life, as_of: int, accept: int, process: dict[str, int]):
    done = _first((life.processed, life.first_answer))
    due = None if life.created is None else life.created + accept
    if life.accepted is not None and due is not None and life.accepted > due:
        yield "late_ack", due, life.accepted
    if (life.hops or 0) > 15:
        yield "loop", life.created, None
    if life.misses > 1:
        yield "routing_miss_repeated", life.created, life.accepted
    if len(life.engaged_nodes) > 1:
        yield "duplicate_engagement", life.processed, None
    if life.task == "failed":
        broken = life.error_class == "contract_mismatch"
        yield "contract_mismatch" if broken else "task_failed", life.failed, None
    if life.state == "dead_letter":
        yield "dead_letter", life.dead, None
        if life.outcome == "ok" or life.answered:
            yield "answered_after_dead_letter", done, None
        return
    if life.outcome == "failed":
        yield "turn_failed", life.processed, _since(life.replied, life.processed)
    if life.state in {"emitted", "retry_pending"} and due is not None and due < as_of:
        yield "never_accepted", due, None
    if life.accepted is not None and (life.within is not None or life.kind in process):
        late = life.accepted + (process[life.kind] if life.within is None else life.within * 1000)
        if (life.state == "accepted" and late < as_of) or (done is not None and done > late):
            yield "accepted_not_processed", late, done
    if life.task is not None:
        yield from _task_times(life, as_of)


def _task_times(life: Life, as_of: int):
    finished = _first((life.completed, life.failed))
    is_open = life.task in {"created", "accepted", "working"}
    promised = life.eta
    if promised is None and life.taken_on is not None:
        promised = life.taken_on + (3600 * SECOND if life.within is None else life.within * 1000)
    quiet = None if life.progress is None else life.progress + 900 * SECOND
    for name, due in (("eta_breach", promised), ("progress_breach", quiet)):
        if due is not None and ((finished is not None and finished > due) or (is_open and due < as_of)):
            yield name, due, finished


def stream_incidents(rows: Iterable[EventRow], found: dict[str, Life]) -> Incidents:
    """What outboxes show: missing and contested entries, unknown kinds, clocks."""
    rows = list(rows)
    return {*_gaps_and_forks(rows), *_unknown(rows), *_skewed(found)}


def missing(rows: Iterable[EventRow]) -> dict[tuple[str, str], set[int]]:
    """Of each epoch of an outbox, the places below the last that no row has."""
    seen: dict[tuple[str, str], set[int]] = defaultdict(set)
    for row in rows:
        seen[row.source_node_id, row.epoch].add(row.seq)
    return {stream: set(range(1, max(places))) - places for stream, places in seen.items()}


def _gaps_and_forks(rows: list[EventRow]):
    for (node, epoch), places in missing(rows).items():
        if places:
            yield "seq_gap", f"{node}/{epoch}", None, None
    said: dict[tuple[str, str, int], set] = defaultdict(set)
    for row in rows:
        said[row.source_node_id, row.epoch, row.seq].add((row.event_id, row.kind, row.attempt, row.digest))
    twice = {place for place, entries in said.items() if len(entries) > 1}
    for node, epoch in {place[:2] for place in twice}:
        at = _first(
            r.created_at
            for r in rows
            if (r.source_node_id, r.epoch) == (node, epoch) and (node, epoch, r.seq) in twice
        )
        yield "fork", f"{node}/{epoch}", at, None


def _unknown(rows: list[EventRow]):
    first: dict[str, list[int | None]] = defaultdict(list)
    for row in rows:
        if "unknown_kind" in flags(row):
            first[f"{row.source_node_id}/{row.kind}"].append(row.created_at)
    for subject, times in first.items():
        yield "unknown_kind", subject, _first(times), None


def _skewed(found: dict[str, Life]):
    pairs: dict[str, list[int]] = defaultdict(list)
    for life in found.values():
        if life.accepted is None or life.created is None or life.to_node == life.from_node:
            continue
        if life.accepted - life.created < -SECOND:
            pairs[f"{life.from_node}>{life.to_node}"].append(life.created)
    for subject, times in pairs.items():
        yield "clock_skew", subject, min(times), None


WAITING = {
    "never_accepted", "accepted_not_processed", "late_ack", "dead_letter", "eta_breach", "progress_breach",
}  # fmt: skip


def away(rows: Iterable[EventRow]) -> dict[str, list[tuple[int, int | None]]]:
    """By node the times that it had announced to be away, in microseconds; None: not over."""
    said = {
        (row.source_node_id, row.epoch, row.seq): row
        for row in rows
        if row.kind == "signal" and row.signal == "maintenance" and not flags(row) & LIES
    }
    found: dict[str, list[tuple[int, int | None]]] = defaultdict(list)
    in_order = [said[place] for place in sorted(said) if _time(said[place]) is not None]
    for place, row in enumerate(in_order):
        later = in_order[place + 1 :]
        following = next((each for each in later if each.source_node_id == row.source_node_id), None)
        end = _first((row.until_at, _time(following) if following is not None else None))
        if not row.is_over and (end is None or end > row.created_at):
            found[row.source_node_id].append((row.created_at, end))
    return found


def meanwhile(hits: Incidents, found: dict[str, Life], rows: Iterable[EventRow]) -> dict[str, set[str]]:
    """By incident the nodes that were away as announced when it opened, where there are any."""
    times = away(rows)
    nodes = {}
    for name, subject, opened, _ in hits:
        life = found.get(subject) if name in WAITING and opened is not None else None
        waited_for = {life.from_node, life.to_node} if life is not None else set()
        nodes[f"{name}:{subject}"] = {
            node
            for node in waited_for
            if any(start <= opened and (end is None or opened < end) for start, end in times.get(node, ()))
        }
    return {incident: names for incident, names in nodes.items() if names}


def percentile(values: list[int], percent: int) -> int | None:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)] if ordered else None
