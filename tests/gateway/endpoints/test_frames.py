"""Frames of the subscribe socket: whatever comes in, a frame or an error comes out."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api.frames import DeliverFrame, ErrorFrame, OkFrame
from gateway.endpoints.bodies import EnvelopeBody, MessageBody
from gateway.endpoints.frames import (
    AckFrame,
    BadClientFrame,
    CreditFrame,
    EnqueueFrame,
    ExtendFrame,
    NackFrame,
    ReplyFrame,
    deliver_text,
    error_frame,
    frame_text,
    frames_of,
    messages_of,
    read_frame,
)
from gateway.endpoints.limits import MESSAGE_CHARS_MAX, SOCKET_CREDIT_MAX, SOCKET_MESSAGE_CHARS_MAX
from gateway.engine.effects import Handed
from gateway.errors import Busy, Denied
from outbox.ids import EventId

X = "evt_" + "0" * 32
VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers(), max_size=2)
)
KEYS = st.sampled_from(
    ["credit", "enqueue", "ack", "nack", "reply", "extend", "reqId", "leaseId", "payload", "delayMs", "x"]
)


@pytest.mark.parametrize(
    ("frame", "record"),
    [
        ({"credit": 5}, CreditFrame(credit=5)),
        ({"credit": 1, "reqId": "a"}, CreditFrame(credit=1, req_id="a")),
        ({"reqId": 3, "credit": 1}, CreditFrame(credit=1, req_id=3)),
        (
            {"enqueue": {"to": "bob", "envelope": {"payload": 1}}},
            EnqueueFrame(enqueue=MessageBody(to="bob", envelope=EnvelopeBody(payload=msgspec.Raw(b"1")))),
        ),
        ({"ack": X}, AckFrame(ack=X)),
        ({"ack": X, "outcome": "failed", "error": "e"}, AckFrame(ack=X, outcome="failed", error="e")),
        ({"nack": X, "leaseId": "l", "delayMs": 9}, NackFrame(nack=X, lease_id="l", delay_ms=9)),
        ({"reply": X, "text": "t"}, ReplyFrame(reply=X, text="t")),
        ({"extend": X, "leaseId": "l", "leaseMs": 1}, ExtendFrame(extend=X, lease_id="l", lease_ms=1)),
    ],
)
def test_what_a_client_may_say(frame: dict[str, object], record: object) -> None:
    assert read_frame(json.dumps(frame, separators=(",", ":"))) == record
    assert read_frame(json.dumps(frame, indent=1)) == record


@pytest.mark.parametrize("verb", ["enqueue", "reply"])
@pytest.mark.parametrize("payload", ["[" * 70 + "]" * 70, '"\\ud800"'])
def test_what_no_reader_could_read_is_refused(verb: str, payload: str) -> None:
    said = {
        "enqueue": f'{{"to":"bob","envelope":{{"payload":{payload}}}}}',
        "reply": f'"{X}","payload":{payload}',
    }
    frame = read_frame(f'{{"{verb}":{said[verb]},"reqId":1}}')
    assert isinstance(frame, BadClientFrame)
    assert frame.error.code == "invalid_request"


@given(st.dictionaries(KEYS, VALUES, max_size=4).map(json.dumps) | st.text())
def test_anything_becomes_a_frame_or_an_error(text: str) -> None:
    frame = read_frame(text)
    if isinstance(frame, CreditFrame):
        assert 1 <= frame.credit <= SOCKET_CREDIT_MAX
    if isinstance(frame, BadClientFrame):
        assert frame.error.code in {"invalid_request", "too_large"}
        frame_text(error_frame(frame.error, frame.req_id))


FRAMES = st.lists(st.text(alphabet="ab{}", min_size=1, max_size=MESSAGE_CHARS_MAX // 3), max_size=12)


@given(FRAMES)
def test_frames_survive_their_messages(frames: list[str]) -> None:
    messages = list(messages_of(frames, lines=True))
    assert [frame for message in messages for frame in frames_of(message, lines=True)] == frames
    assert all(len(message) <= MESSAGE_CHARS_MAX + len(frames) for message in messages)
    assert list(messages_of(frames, lines=False)) == frames
    assert all(frames_of(frame, lines=False) == [frame] for frame in frames)


def test_a_message_above_its_limit_is_one_frame_and_refused() -> None:
    message = "\n".join(['{"credit":1}'] * (SOCKET_MESSAGE_CHARS_MAX // 10))
    [frame] = frames_of(message, lines=True)
    refused = read_frame(frame)
    assert isinstance(refused, BadClientFrame)
    assert refused.error.code == "too_large"


def test_an_error_carries_the_code_of_whoever_refused() -> None:
    assert error_frame(Busy("b", hint="h"), 7).error.code == "busy"
    denied = error_frame(Denied("conflict", "c"), None)
    assert json.loads(frame_text(denied)) == {"error": {"code": "conflict", "message": "c"}}
    busy = {"code": "busy", "message": "b", "hint": "h", "retryable": True, "reqId": 7}
    assert json.loads(frame_text(error_frame(Busy("b", hint="h"), 7))) == {"error": busy}
    assert frame_text(OkFrame(ok=1)) == '{"ok":1}'


def test_an_events_bytes_go_through_and_bad_utf8_does_not_break_the_frame() -> None:
    for body in (b'{"v":1, "payload":  {"a":1.50}}', b'{"payload":"\xff"}'):
        turn = Handed("ws", EventId(X), "lease", 30_000, 2, resumed=True, body=body)
        text = deliver_text(turn)
        assert body.decode(errors="replace") in text
        deliver = msgspec.json.decode(text, type=DeliverFrame).deliver
        assert (deliver.lease_id, deliver.delivery_count, deliver.resumed) == ("lease", 2, True)


def test_error_frames_are_read_back() -> None:
    frame = error_frame(Denied("conflict", "c", hint="h"), "r")
    assert msgspec.json.decode(frame_text(frame), type=ErrorFrame) == frame
