"""A node that only carries an event tells what the copies show, and believes nobody who was not asked."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api.carried import Told, carried, told
from gateway.api.trace import EventTrace, Stage
from outbox.chain import Entry
from outbox.envelope import (
    Ack,
    DeadLetter,
    Event,
    Trace,
    encode_event,
    encode_header,
    encode_payload,
    header_of,
)
from outbox.ids import AgentId, Epoch, EventId, NodeId, Seq, make_event_id
from outbox.kinds import AckStatus, Kind, Outcome

MBP, LAB, VPS, EPOCH = NodeId("mbp"), NodeId("lab"), NodeId("vps"), Epoch("000001-0123456789ab")
X = make_event_id(1_800_000_000_000, b"x" * 10)
AT = "2026-11-28T10:00:0{}.000Z"


def said(node: NodeId, seq: int, to: tuple[NodeId, ...] | str = (), **fields: Any) -> Told:
    given_ = {
        "event_id": make_event_id(1_800_000_000_000 + seq, node.encode() * 4),
        "source_node_id": node,
        "created_at": AT.format(seq),
        "payload": msgspec.Raw(b"1"),
    }
    event = Event(**{**given_, **fields})
    body = encode_event(event)
    found = told(node, EPOCH, Entry(Seq(seq), encode_header(header_of(event, to, len(body))), body))
    assert found is not None
    return found


def message(seq: int = 1, to: tuple[NodeId, ...] | str = (LAB,), attempt: int = 1, **fields: Any) -> Told:
    trace = Trace(attempt=attempt, first_position=(EPOCH, Seq(1)) if attempt > 1 else None)
    names = {"source_agent_id": AgentId("coder"), "to_agent_id": AgentId("tester")}
    return said(MBP, seq, to, kind=Kind.MESSAGE, event_id=X, trace=trace, **{**names, **fields})


def ack(node: NodeId, seq: int, status: AckStatus = AckStatus.ACCEPTED, **fields: Any) -> Told:
    payload = encode_payload(Ack(ref=X, status=status, **fields))
    return said(node, seq, (MBP,), kind=Kind.ACK, corr_id=X, payload=payload)


def reply(node: NodeId, seq: int) -> Told:
    return said(node, seq, (MBP,), kind=Kind.REPLY, corr_id=X, source_agent_id=AgentId("tester"))


def shown(trace: EventTrace | None) -> list[tuple[str, str, int | None]]:
    assert trace is not None
    return [(step.stage, step.node, step.seq) for step in trace.steps]


def test_each_step_stands_where_its_node_wrote_it() -> None:
    done = ack(LAB, 5, AckStatus.PROCESSED, engaged_at=AT.format(4), deliveries=2)
    trace = carried(VPS, X, [reply(LAB, 6), done, ack(LAB, 3), message(2, attempt=2), message(1)])
    assert trace is not None
    assert shown(trace) == [
        ("emitted", "mbp", 1),
        ("emitted", "mbp", 2),
        ("accepted", "lab", 3),
        ("engaged", "lab", None),
        ("replied", "lab", 6),
        ("processed", "lab", 5),
    ]
    assert (trace.state, trace.carried, trace.told_by) == ("processed", True, "vps")
    assert (trace.from_agent, trace.from_node, trace.to_agent, trace.to_node) == (
        "coder",
        "mbp",
        "tester",
        "lab",
    )
    assert [step.at_ms is None for step in trace.steps] == [False, True, False, False, False, False]
    assert trace.steps[3].deliveries == 2


def test_what_is_said_again_is_one_step() -> None:
    again = [message(), ack(LAB, 3), ack(LAB, 4)]
    assert shown(carried(VPS, X, again)) == [("emitted", "mbp", 1), ("accepted", "lab", 3)]


@pytest.mark.parametrize("liar", [ack(VPS, 3), reply(VPS, 3)])
def test_who_was_not_asked_says_nothing(liar: Told) -> None:
    assert shown(carried(VPS, X, [message(), liar])) == [("emitted", "mbp", 1)]
    assert len(shown(carried(VPS, X, [message(to="*"), liar]))) == 2, "everybody was"


def test_only_its_sender_gives_it_up() -> None:
    letter = encode_payload(DeadLetter(ref=X, reason="expired", attempts=1))
    letters = [said(node, 7, kind=Kind.DEAD_LETTER, corr_id=X, payload=letter) for node in (LAB, MBP)]
    trace = carried(VPS, X, [message(), *letters])
    assert shown(trace) == [("emitted", "mbp", 1), ("dead_letter", "mbp", 7)]
    assert trace is not None
    assert (trace.state, trace.steps[-1].error) == ("dead_letter", "expired")


def test_without_the_event_itself_there_is_no_trace() -> None:
    assert carried(VPS, X, []) is None
    assert carried(VPS, X, [ack(LAB, 3)]) is None


def test_what_is_no_event_or_no_payload_tells_nothing() -> None:
    good = message()
    entry = Entry(Seq(1), encode_header(header_of(good.event, (LAB,), 2)), b"{}")
    assert told(MBP, EPOCH, entry) is None
    assert told(LAB, EPOCH, Entry(Seq(1), b"\xff", encode_event(good.event))) is None
    forged = Entry(Seq(1), encode_header(header_of(good.event, (LAB,), 2)), encode_event(good.event))
    assert told(LAB, EPOCH, forged) is None, "it speaks for another node"
    broken = said(LAB, 3, (MBP,), kind=Kind.ACK, corr_id=X, payload=msgspec.Raw(b"[]"))
    assert shown(carried(VPS, X, [good, broken])) == [("emitted", "mbp", 1)]


PIECES = (
    message(1),
    message(2, attempt=2),
    ack(LAB, 3),
    ack(LAB, 4),
    ack(LAB, 5, AckStatus.PROCESSED),
    reply(LAB, 6),
)


@given(st.permutations(PIECES))
def test_the_order_in_which_copies_are_read_does_not_matter(pieces: list[Told]) -> None:
    assert carried(VPS, X, pieces) == carried(VPS, X, PIECES)


def test_refused_is_told_with_its_reason() -> None:
    refused = ack(LAB, 3, AckStatus.PROCESSED, outcome=Outcome.REFUSED, error="not_owner")
    trace = carried(VPS, X, [message(), refused])
    assert trace is not None
    assert (trace.steps[-1].stage, trace.steps[-1].outcome, trace.steps[-1].error) == (
        Stage.PROCESSED,
        "refused",
        "not_owner",
    )


def test_another_nodes_event_under_the_same_id_is_another_story() -> None:
    other = said(LAB, 1, (VPS,), kind=Kind.MESSAGE, event_id=EventId(X))
    trace = carried(VPS, X, [message(), other])
    assert shown(trace) == [("emitted", "lab", 1)]
