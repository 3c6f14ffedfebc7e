"""The report's truth in plain Python: slow, obvious, and sharing nothing with the job but the row."""

from collections import defaultdict
from collections.abc import Iterable
from math import ceil

import msgspec

from spark.schema import EventRow


class Life(msgspec.Struct):
    """One root event."""

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


Incidents = set[tuple[str, str, int | None, int | None]]
"""Class, root, opened and closed in microseconds."""


def lives(rows: Iterable[EventRow]) -> dict[str, Life]:
    about: dict[str, list[EventRow]] = defaultdict(list)
    replies: dict[str, list[EventRow]] = defaultdict(list)
    for row in rows:
        if row.flags and set(row.flags.split(",")) & {
            "header_disagrees",
            "foreign_source",
            "bad_payload",
            "not_an_event",
        }:
            continue
        about[row.root_id].append(row)
        if row.kind == "reply":
            replies[row.corr_id].append(row)
    found = {root: _life(events, replies.get(root, [])) for root, events in about.items()}
    return {root: life for root, life in found.items() if life is not None}


def _time(row: EventRow) -> int | None:
    return None if row.flags and "created_at" in row.flags.split(",") else row.created_at


def _first(times: Iterable[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)


def _life(events: list[EventRow], replies: list[EventRow]) -> Life | None:
    roots = [e for e in events if e.kind in {"message", "reply"}]
    if not roots:
        return None
    acks = [e for e in events if e.kind == "ack"]
    refused = [e for e in acks if e.outcome == "refused"]
    accepted = [e for e in acks if e.status == "accepted" and e not in refused]
    processed = [e for e in acks if e.status == "processed" and e not in refused]
    dead = [e for e in events if e.kind == "dead_letter"]
    last = max(roots, key=lambda e: e.attempt)
    attempts = max([last.attempt, *(e.attempts for e in dead)])
    if dead:
        state = "dead_letter"
    elif replies:
        state = "replied"
    elif processed:
        state = "processed"
    elif accepted:
        state = "accepted"
    else:
        state = "retry_pending" if refused or attempts > 1 else "emitted"
    outcomes = {e.outcome for e in processed}
    return Life(
        kind=last.kind,
        from_node=last.source_node_id,
        to_node=accepted[0].source_node_id if accepted else last.to_nodes or None,
        state=state,
        attempts=attempts,
        outcome="ok" if "ok" in outcomes else "failed" if "failed" in outcomes else None,
        created=_first(map(_time, roots)),
        accepted=_first(map(_time, accepted)),
        engaged=_first(e.engaged_at for e in processed),
        processed=_first(map(_time, processed)),
        replied=_first(map(_time, replies)),
        dead=_first(map(_time, dead)),
    )


def incidents(found: dict[str, Life], as_of: int, accept: int, process: int) -> Incidents:
    """All times in microseconds."""
    hits: Incidents = set()
    for root, life in found.items():
        if life.state == "dead_letter":
            hits.add(("dead_letter", root, life.dead, None))
            continue
        if life.outcome == "failed":
            hits.add(("turn_failed", root, life.processed, None))
        if life.state in {"emitted", "retry_pending"} and life.created + accept < as_of:
            hits.add(("never_accepted", root, life.created + accept, None))
        if life.kind == "message" and life.accepted is not None:
            due, done = life.accepted + process, _first((life.processed, life.replied))
            if (life.state == "accepted" and due < as_of) or (done is not None and done > due):
                hits.add(("accepted_not_processed", root, due, done))
    return hits


def percentile(values: list[int], percent: int) -> int | None:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)] if ordered else None
