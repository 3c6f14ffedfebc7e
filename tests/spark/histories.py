"""Histories of a small mesh as rows of the lake: what each message and each task went through."""

from collections import defaultdict
from collections.abc import Iterator

import msgspec
from hypothesis import strategies as st

from outbox.ids import make_event_id
from spark.schema import EventRow, Flag, Micros

START_MS = 1_780_000_000_000
ACCEPT_MS, PROCESS_MS = 60_000, 300_000
TAKE_ON_MS = 120_000
AS_OF_MS = START_MS + 3_600_000
NODES = ("a", "b", "007")
AGENTS = ("planner", "coder", "reviewer")
EPOCH = "000001-000000000000"

EDGES = (0, 1, 850, 59_999, 60_000, 60_001, 299_990, 299_999, 300_000, 300_001, 2_000_000)
LONG_EDGES = (*EDGES, 119_999, 120_001, 900_000, 900_001, 3_600_000, 3_600_001)
delays = st.sampled_from(EDGES)
long_delays = st.sampled_from(LONG_EDGES)


class Turn(msgspec.Struct, frozen=True):
    """How a message's turn ended."""

    delay_ms: int
    outcome: str
    node: str


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a message a task, and how its executor fared with it."""

    capability: str | None = "cap.build"
    within_ms: int | None = None
    """How soon the requester wants it taken on, and done."""
    accepted_ms: int | None = None
    eta_ms: int | None = None
    """Said with the acceptance: how long after its creation it will be done."""
    updates_ms: tuple[int, ...] = ()
    end: str | None = None
    """Kind of the last step; ``contract_mismatch`` for a failure of that class."""
    end_ms: int = 0
    by: str | None = None
    """The node whose agent works on it, when it is not the one it was routed to."""


class Announced(msgspec.Struct, frozen=True, kw_only=True):
    """What a node says of its maintenance."""

    node: str
    at_ms: int
    """After the message was created."""
    until_ms: int | None = None
    """After it was said."""
    is_over: bool = False


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What one root event goes through."""

    created_ms: int
    sender: str
    receiver: str
    """A node, several joined by commas, or ``*``."""
    from_agent: str = "planner"
    to_agent: str = "coder"
    answers: int | None = None
    """Number of the message that this is a reply to; None for a message."""
    attempts: int = 1
    refusals_ms: tuple[int, ...] = ()
    """Delays of the refusals ``not_owner`` by the node that all attempts but the last went to."""
    accepted_ms: tuple[int, ...] = ()
    """Delays of its ``accepted`` ACKs; more than one is a duplicate."""
    turns: tuple[Turn, ...] = ()
    dead_ms: int | None = None
    dead_by: str | None = None
    """Who says that it is dead, when it is not the sender."""
    broken_clock: bool = False
    """The receiver's clock is out of range."""
    forged: bool = False
    """An ACK for it stands in another node's name, and is flagged."""
    hops: int = 0
    task: Task | None = None
    announced: Announced | None = None
    """Said meanwhile."""

    @property
    def is_for_several(self) -> bool:
        """A broadcast or a group, which names no single agent."""
        return self.receiver == "*" or "," in self.receiver


turns = st.builds(
    Turn, delay_ms=delays, outcome=st.sampled_from(("ok", "ok", "failed")), node=st.sampled_from(NODES)
)

tasks = st.builds(
    Task,
    capability=st.sampled_from(("cap.build", "cap.review", None)),
    within_ms=st.none() | long_delays,
    accepted_ms=st.none() | long_delays,
    eta_ms=st.none() | long_delays,
    updates_ms=st.lists(long_delays, max_size=2).map(tuple),
    end=st.sampled_from((None, "task_complete", "task_failed", "contract_mismatch")),
    end_ms=long_delays,
    by=st.sampled_from((None, None, None, "007")),
)

announcements = st.builds(
    Announced,
    node=st.sampled_from(NODES),
    at_ms=delays,
    until_ms=st.none() | delays,
    is_over=st.sampled_from((False, False, True)),
)

scripts = st.builds(
    Script,
    created_ms=st.integers(0, 3_700_000).map(lambda ms: START_MS + ms),
    sender=st.sampled_from(NODES),
    receiver=st.sampled_from((*NODES, *NODES, "b,007", "*", "")),
    from_agent=st.sampled_from(AGENTS),
    to_agent=st.sampled_from(AGENTS),
    answers=st.none() | st.integers(0, 60),
    attempts=st.integers(1, 3),
    refusals_ms=st.lists(delays, max_size=2).map(tuple),
    accepted_ms=st.lists(delays | st.just(-5_000), max_size=2).map(tuple),
    turns=st.lists(turns, max_size=2).map(tuple),
    dead_ms=st.none() | st.none() | delays,
    dead_by=st.sampled_from((None, None, *NODES)),
    broken_clock=st.sampled_from((False, False, False, True)),
    forged=st.booleans(),
    hops=st.sampled_from((0, 0, 1, 15, 16)),
    task=st.none() | tasks,
    announced=st.none() | st.none() | announcements,
)


def root_of(number: int) -> str:
    return make_event_id(START_MS + number, number.to_bytes(10))


def history(all_scripts: list[Script]) -> list[EventRow]:
    """All events of all outboxes: each has its own entries one after the other."""
    rows = [
        row for number, script in enumerate(all_scripts) for row in _events(number, script, len(all_scripts))
    ]
    places: dict[str, int] = defaultdict(int)
    numbered = []
    for place, row in enumerate(rows):
        places[row.source_node_id] += 1
        event_id = row.event_id or make_event_id(START_MS, (7_000_000 + place).to_bytes(10))
        numbered.append(msgspec.structs.replace(row, seq=places[row.source_node_id], event_id=event_id))
    return numbered


def _micros(ms: int) -> Micros:
    return Micros(ms * 1000)


def _row(node: str, kind: str, at_ms: int, root: str, **more: object) -> EventRow:
    return EventRow(
        source_node_id=node,
        epoch=EPOCH,
        seq=0,
        kind=kind,
        created_at=_micros(at_ms),
        root_id=root,
        bytes=100,
        attempt=more.pop("attempt", 1),
        priority=2,
        corr_id=more.pop("corr_id", root),
        **more,
    )


def _events(number: int, script: Script, count: int) -> Iterator[EventRow]:
    root, created_ms = root_of(number), script.created_ms
    receiver = script.receiver.replace("*", "b").split(",")[0] or "b"
    yield from _attempts(number, script, count)
    doubt = Flag.CREATED_AT if script.broken_clock else None
    for delay_ms in script.refusals_ms:
        yield _ack(
            NODES[0], created_ms + delay_ms, root, status="accepted", outcome="refused", error="not_owner"
        )
    for delay_ms in script.accepted_ms:
        yield _ack(receiver, created_ms + delay_ms, root, status="accepted", outcome="ok", flags=doubt)
    for turn in script.turns if script.answers is None else ():
        yield _ack(
            turn.node,
            created_ms + turn.delay_ms + 10,
            root,
            status="processed",
            outcome=turn.outcome,
            engaged_at=_micros(created_ms + turn.delay_ms),
            deliveries=1,
            error="boom" if turn.outcome == "failed" else None,
            flags=doubt,
        )
    if script.dead_ms is not None:
        yield _row(
            script.dead_by or script.sender,
            "dead_letter",
            created_ms + script.dead_ms,
            root,
            reason="expired",
            attempts=script.attempts,
            to_nodes=script.receiver.replace("*", "").split(",")[-1],
        )
    if script.forged:
        yield _ack("b", created_ms, root, status="processed", outcome="ok", flags=Flag.HEADER_DISAGREES)
    if script.task and script.answers is None:
        yield from _steps(number, script, script.task, receiver)
    yield _row(script.sender, "signal", created_ms, root, corr_id=None)
    if script.announced is not None:
        yield _announcement(script.announced, created_ms + script.announced.at_ms, root)
    yield _row(script.sender, "from_the_future", created_ms, root, corr_id=None, flags=Flag.UNKNOWN_KIND)


def _announcement(said: Announced, at_ms: int, root: str) -> EventRow:
    return _row(
        said.node,
        "signal",
        at_ms,
        root,
        corr_id=None,
        signal="maintenance",
        reason="new disk",
        until_at=None if said.until_ms is None else _micros(at_ms + said.until_ms),
        is_over=said.is_over,
    )


def _attempts(number: int, script: Script, count: int) -> Iterator[EventRow]:
    task = script.task or Task(capability=None)
    kind = "reply" if script.answers is not None else "task_create" if script.task else "message"
    for attempt in range(1, script.attempts + 1):
        yield _row(
            script.sender,
            kind,
            script.created_ms + attempt - 1,
            root_of(number),
            attempt=attempt,
            event_id=root_of(number),
            corr_id=None if script.answers is None else root_of(script.answers % (count + 2)),
            source_agent_id=script.from_agent,
            to_agent_id=None if kind == "message" and script.is_for_several else script.to_agent,
            thread_id="talk",
            to_nodes=script.receiver if attempt == script.attempts else NODES[0],
            hops=script.hops,
            capability_id=task.capability,
            version="^1" if script.task else None,
            skill_version="1.0.0" if script.task else None,
            accept_within_ms=task.within_ms,
            complete_within_ms=task.within_ms,
        )


def _steps(number: int, script: Script, task: Task, receiver: str) -> Iterator[EventRow]:
    places = iter(range(8))

    def step(kind: str, delay_ms: int, **more: object) -> EventRow:
        own = make_event_id(START_MS, (9_000_000 + number * 8 + next(places)).to_bytes(10))
        return _row(
            task.by or receiver,
            kind,
            script.created_ms + delay_ms,
            own,
            event_id=own,
            corr_id=root_of(number),
            to_nodes=script.sender,
            skill_version="2.0.0",
            **more,
        )

    if task.accepted_ms is not None:
        eta = None if task.eta_ms is None else _micros(script.created_ms + task.eta_ms)
        yield step("task_accept", task.accepted_ms, eta_at=eta, version="1.4.2")
    for delay_ms in task.updates_ms:
        yield step("task_update", delay_ms)
    if task.end == "task_complete":
        yield step("task_complete", task.end_ms)
    elif task.end is not None:
        error = "contract_mismatch" if task.end == "contract_mismatch" else "crashed"
        yield step("task_failed", task.end_ms, error_class=error, error="it broke")


def _ack(node: str, at_ms: int, root: str, **more: object) -> EventRow:
    return _row(node, "ack", at_ms, root, **more)
