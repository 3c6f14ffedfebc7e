import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.envelope import (
    EVERYONE,
    Ack,
    DeadLetter,
    Event,
    Header,
    RouteDecision,
    Signal,
    Trace,
    agrees,
    decode_event,
    decode_header,
    decode_payload,
    encode_event,
    encode_header,
    encode_payload,
    header_of,
)
from outbox.errors import InvalidEvent, TooLarge
from outbox.ids import AgentId, Epoch, EventId, NodeId
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.limits import BODY_BYTES_MAX, HEADER_BYTES_MAX, PAYLOAD_BYTES_MAX

ID = EventId("evt_" + "0" * 31 + "1")
OTHER = EventId("evt_" + "0" * 31 + "2")
NOW = "2026-11-27T12:00:00.000Z"

payloads = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
names = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,62}", fullmatch=True)
traces = st.builds(
    Trace,
    attempt=st.integers(1, 20),
    first_position=st.none() | st.just((Epoch("000001-0123456789ab"), 7)),
    route_decision=st.none()
    | st.builds(RouteDecision, names.map(NodeId), st.integers(0, 9), st.text(max_size=9)),
    hops=st.integers(0, 16),
)
events = st.builds(
    Event,
    event_id=st.just(ID),
    kind=st.sampled_from([*Kind, "from_the_future"]),
    source_node_id=names.map(NodeId),
    source_agent_id=st.none() | names.map(AgentId),
    to_agent_id=st.none() | names.map(AgentId),
    corr_id=st.just(OTHER),
    created_at=st.just(NOW),
    expires_at=st.none() | st.just(NOW),
    thread_id=st.none() | st.text(max_size=128),
    priority=st.integers(0, 4),
    trace=traces,
    payload=payloads.map(msgspec.json.encode).map(msgspec.Raw),
)


def message(**changes: Any) -> dict[str, Any]:
    return {"v": 1, "eventId": ID, "kind": "message", "sourceNodeId": "vps", "createdAt": NOW} | changes


@given(events)
def test_an_event_survives_the_wire(event: Event) -> None:
    body = encode_event(event)
    read = decode_event(body)
    assert encode_event(read) == body
    assert msgspec.json.decode(read.payload) == msgspec.json.decode(event.payload)
    assert (read.trace, read.thread_id) == (event.trace, event.thread_id)


@given(events, st.just(EVERYONE) | st.lists(names.map(NodeId), max_size=3).map(tuple))
def test_the_header_of_an_event_agrees_with_it(event: Event, to: tuple[NodeId, ...] | str) -> None:
    body = encode_event(event)
    header = decode_header(encode_header(header_of(event, to, len(body))))
    assert agrees(header, event, body)


@pytest.mark.parametrize(
    "lie",
    [{"event_id": OTHER}, {"kind": "reply"}, {"corr_id": OTHER}, {"attempt": 2}, {"size": 1}],
)
def test_a_header_that_lies_is_seen(lie: dict[str, Any]) -> None:
    event = Event(event_id=ID, kind="message", source_node_id=NodeId("vps"), created_at=NOW)
    body = encode_event(event)
    header = msgspec.structs.replace(header_of(event, EVERYONE, len(body)), **lie)
    assert not agrees(header, event, body)


def test_wire_names_are_camel_case_and_absent_fields_are_absent() -> None:
    event = Event(event_id=ID, kind="message", source_node_id=NodeId("vps"), created_at=NOW)
    assert msgspec.json.decode(encode_event(event)) == {
        "eventId": ID,
        "kind": "message",
        "sourceNodeId": "vps",
        "createdAt": NOW,
    }


def test_unknown_fields_and_kinds_are_let_through() -> None:
    event = decode_event(msgspec.json.encode(message(kind="from_the_future", fromTheFuture=[1])))
    assert event.kind == "from_the_future"


@pytest.mark.parametrize(
    "changes",
    [
        {"eventId": "evt_1"},
        {"sourceNodeId": "VPS"},
        {"sourceAgentId": "a b"},
        {"toAgentId": ""},
        {"kind": "ack"},
        {"kind": "reply", "corrId": "evt_x"},
        {"createdAt": "yesterday"},
        {"expiresAt": "2026-11-27"},
        {"v": 0},
        {"v": "1"},
        {"priority": 5},
        {"priority": -1},
        {"priority": True},
        {"trace": {"attempt": 0}},
        {"trace": {"hops": -1}},
        {"threadId": "x" * 129},
        {"type": "x" * 129},
    ],
)
def test_events_that_break_a_rule(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidEvent):
        decode_event(msgspec.json.encode(message(**changes)))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"\xff", b'{"eventId": "\xff"}', b"[" * 100_000, b"null", b'{"v": 1e999}']
)
def test_bytes_that_are_no_event(body: bytes) -> None:
    with pytest.raises(InvalidEvent):
        decode_event(body)
    with pytest.raises(InvalidEvent):
        decode_header(body[:HEADER_BYTES_MAX])


@given(st.binary(max_size=200))
def test_no_bytes_break_the_readers(body: bytes) -> None:
    for read in (decode_event, decode_header):
        with contextlib.suppress(InvalidEvent):
            read(body)


def sized(payload_bytes: int, **more: Any) -> Event:
    payload = msgspec.Raw(b'"' + b"x" * (payload_bytes - 2) + b'"')
    return Event(
        event_id=ID, kind="message", source_node_id=NodeId("vps"), created_at=NOW, payload=payload, **more
    )


def test_the_largest_payload_passes_and_one_byte_more_does_not() -> None:
    assert decode_event(encode_event(sized(PAYLOAD_BYTES_MAX)))
    with pytest.raises(TooLarge, match="payload") as caught:
        encode_event(sized(PAYLOAD_BYTES_MAX + 1))
    assert caught.value.hint


def test_an_envelope_cannot_grow_past_the_body_limit() -> None:
    with pytest.raises(TooLarge, match="event"):
        encode_event(sized(PAYLOAD_BYTES_MAX, idempotency_key="k" * 20_000))
    with pytest.raises(TooLarge):
        decode_event(b" " * (BODY_BYTES_MAX + 1))


def test_a_long_header_is_refused() -> None:
    header = Header(event_id=ID, kind="x" * HEADER_BYTES_MAX, size=1)
    with pytest.raises(InvalidEvent, match="too long"):
        decode_header(encode_header(header))


@pytest.mark.parametrize(
    "record",
    [
        Ack(
            ref=ID,
            status=AckStatus.PROCESSED,
            outcome=Outcome.FAILED,
            error="boom",
            engaged_at=NOW,
            deliveries=2,
        ),
        Ack(ref=ID, status=AckStatus.ACCEPTED),
        DeadLetter(ref=ID, reason="expired", attempts=3, last_error="no answer"),
        Signal(signal="incident", ref=ID, detail="late"),
    ],
)
def test_payload_records_survive_the_wire(record: Ack | DeadLetter | Signal) -> None:
    event = Event(
        event_id=OTHER,
        kind="signal",
        source_node_id=NodeId("vps"),
        created_at=NOW,
        payload=encode_payload(record),
    )
    assert decode_payload(decode_event(encode_event(event)), type(record)) == record


def test_a_payload_of_another_shape_is_an_invalid_event() -> None:
    event = Event(event_id=ID, kind="ack", source_node_id=NodeId("vps"), created_at=NOW, corr_id=OTHER)
    with pytest.raises(InvalidEvent, match="payload of ack"):
        decode_payload(event, Ack)
