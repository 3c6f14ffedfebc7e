"""Histories of a small mesh as rows of the lake: what each message went through."""

from collections.abc import Iterator

import msgspec
from hypothesis import strategies as st

from outbox.ids import make_event_id
from spark.schema import EventRow, Flag, Micros

START_MS = 1_780_000_000_000
ACCEPT_MS, PROCESS_MS = 60_000, 300_000
AS_OF_MS = START_MS + 3_600_000
NODES = ("a", "b", "007")
AGENTS = ("planner", "coder", "reviewer")

EDGES = (0, 1, 850, 59_999, 60_000, 60_001, 299_990, 299_999, 300_000, 300_001, 2_000_000)
delays = st.sampled_from(EDGES)


class Turn(msgspec.Struct, frozen=True):
    """How a message's turn ended."""

    delay_ms: int
    outcome: str
    node: str


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What one root event goes through."""

    created_ms: int
    sender: str
    receiver: str
    from_agent: str = "planner"
    to_agent: str = "coder"
    answers: int | None = None
    """Number of the message that this is a reply to; None for a message."""
    attempts: int = 1
    refused_first: bool = False
    accepted_ms: tuple[int, ...] = ()
    """Delays of its ``accepted`` ACKs; more than one is a duplicate."""
    turns: tuple[Turn, ...] = ()
    dead_ms: int | None = None
    broken_clock: bool = False
    """The receiver's clock is out of range."""
    forged: bool = False
    """An ACK for it stands in another node's name, and is flagged."""


turns = st.builds(
    Turn, delay_ms=delays, outcome=st.sampled_from(("ok", "ok", "failed")), node=st.sampled_from(NODES)
)

scripts = st.builds(
    Script,
    created_ms=st.integers(0, 3_700_000).map(lambda ms: START_MS + ms),
    sender=st.sampled_from(NODES),
    receiver=st.sampled_from(NODES),
    from_agent=st.sampled_from(AGENTS),
    to_agent=st.sampled_from(AGENTS),
    answers=st.none() | st.integers(0, 60),
    attempts=st.integers(1, 3),
    refused_first=st.booleans(),
    accepted_ms=st.lists(delays, max_size=2).map(tuple),
    turns=st.lists(turns, max_size=2).map(tuple),
    dead_ms=st.none() | st.none() | delays,
    broken_clock=st.sampled_from((False, False, False, True)),
    forged=st.booleans(),
)


def root_of(number: int) -> str:
    return make_event_id(START_MS + number, number.to_bytes(10))


def history(all_scripts: list[Script]) -> list[EventRow]:
    """All events of all outboxes, in no particular order."""
    rows = [
        row for number, script in enumerate(all_scripts) for row in _events(number, script, len(all_scripts))
    ]
    return [
        msgspec.structs.replace(
            row,
            seq=place + 1,
            event_id=row.event_id or make_event_id(START_MS, (7_000_000 + place).to_bytes(10)),
        )
        for place, row in enumerate(rows)
    ]


def _micros(ms: int) -> Micros:
    return Micros(ms * 1000)


def _row(node: str, kind: str, at_ms: int, root: str, **more: object) -> EventRow:
    return EventRow(
        source_node_id=node,
        epoch="000001-000000000000",
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
    kind = "message" if script.answers is None else "reply"
    parent = None if script.answers is None else root_of(script.answers % (count + 2))
    for attempt in range(1, script.attempts + 1):
        yield _row(
            script.sender,
            kind,
            created_ms + attempt - 1,
            root,
            attempt=attempt,
            event_id=root,
            corr_id=parent,
            source_agent_id=script.from_agent,
            to_agent_id=script.to_agent,
            thread_id="talk",
            to_nodes=script.receiver if attempt == script.attempts else NODES[0],
        )
    doubt = Flag.CREATED_AT if script.broken_clock else None
    if script.refused_first:
        yield _ack(NODES[0], created_ms + 5, root, status="accepted", outcome="refused", error="not_owner")
    for delay_ms in script.accepted_ms:
        yield _ack(script.receiver, created_ms + delay_ms, root, status="accepted", outcome="ok", flags=doubt)
    for turn in script.turns if kind == "message" else ():
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
            script.sender,
            "dead_letter",
            created_ms + script.dead_ms,
            root,
            reason="expired",
            attempts=script.attempts,
        )
    if script.forged:
        yield _ack("b", created_ms, root, status="processed", outcome="ok", flags=Flag.HEADER_DISAGREES)
    yield _row(script.sender, "signal", created_ms, root, corr_id=None)
    yield _row(script.sender, "from_the_future", created_ms, root, corr_id=None, flags=Flag.UNKNOWN_KIND)


def _ack(node: str, at_ms: int, root: str, **more: object) -> EventRow:
    return _row(node, "ack", at_ms, root, **more)
