"""Rows of strangers' events stay readable, whatever their payloads hold."""

import json

import msgspec
import pytest

from gateway.api.rows import InboxRow, inbox_row, readable, readable_event
from outbox.ids import AgentId, Epoch, EventId, NodeId, Seq
from outbox.records import Received, TurnState

HEAD = (
    b'{"v":1,"eventId":"evt_00000000000000000000000000000001","kind":"message","sourceNodeId":"lab",'
    b'"sourceAgentId":"far","toAgentId":"bob","createdAt":"2026-11-27T12:00:00.000Z","payload":'
)


def received(payload: bytes) -> Received:
    return Received(
        event_id=EventId("evt_00000000000000000000000000000001"),
        source=NodeId("lab"),
        epoch=Epoch("000001-0123456789ab"),
        seq=Seq(1),
        kind="message",
        to_agent=AgentId("bob"),
        body=HEAD + payload + b"}",
        state=TurnState.QUEUED,
        accepted_at_ms=1,
        expires_at_ms=2,
    )


@pytest.mark.parametrize("payload", [b'{"text":"hi"}', b'"\xff\xfe"', b"1.50", b"null"])
def test_a_row_is_json_that_anybody_reads(payload: bytes) -> None:
    raw = msgspec.json.encode(inbox_row(received(payload)))
    shown = json.loads(raw)
    assert (shown["from"], shown["fromNode"], shown["to"], shown["state"]) == ("far", "lab", "bob", "queued")
    assert shown["payload"] == json.loads(payload.decode(errors="replace"))
    assert msgspec.json.decode(raw, type=InboxRow).sender == "far"


def test_what_is_no_utf8_is_replaced_and_nothing_else() -> None:
    assert readable(b'{"a":"\xc3\xa9"}') == '{"a":"é"}'
    assert bytes(readable_event(HEAD + b'"\xff"}').payload).decode() == '"\ufffd"'
