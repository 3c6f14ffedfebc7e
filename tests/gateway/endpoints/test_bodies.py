"""Bodies: what is read, and what is refused before anything is done."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.endpoints.bodies import AckBody, EnqueueBody, InviteBody, decode, text_payload
from gateway.endpoints.errors import BadRequest
from outbox.limits import JSON_DEPTH_MAX

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_any_payload_is_carried_byte_for_byte(payload: object) -> None:
    raw = json.dumps(payload)
    if "\\ud8" in raw or "Infinity" in raw:
        return
    body = decode(b'{"to":"bob","envelope":{"payload":' + raw.encode() + b"}}", EnqueueBody)
    assert body.envelope is not None
    assert bytes(body.envelope.payload) == raw.encode()


@given(st.binary(max_size=60))
def test_any_bytes_are_a_body_or_a_bad_request(raw: bytes) -> None:
    with suppress(BadRequest):
        assert decode(raw, AckBody).event_id is not None


def test_depth_is_counted_outside_strings() -> None:
    deep = b"[" * (JSON_DEPTH_MAX - 2) + b"]" * (JSON_DEPTH_MAX - 2)
    shallow = json.dumps({"to": "bob", "text": '[{"\\' * 500}).encode()
    assert decode(b'{"to":"b","envelope":{"payload":' + deep + b"}}", EnqueueBody).to == "b"
    assert decode(shallow, EnqueueBody).to == "bob"
    with pytest.raises(BadRequest, match="nested deeper"):
        decode(b'{"to":"b","envelope":{"payload":[[[' + deep + b"]]]}}", EnqueueBody)


@pytest.mark.parametrize("tail", [b"", b"\\", b'"', b"\n"])
@pytest.mark.parametrize("piece", [b'\\"', b'"', b'"a', b"\\\\", b'"\\', b"[]", b"\\\n"])
def test_a_long_body_takes_as_long_as_it_is_long(piece: bytes, tail: bytes) -> None:
    """What takes its square would take hours for a body of this length, and end the test."""
    brackets = b"[" * (JSON_DEPTH_MAX + 1)
    for head in (brackets + b'"', b'{"to":"b","text":"' + brackets):
        with pytest.raises(BadRequest):
            decode(head + piece * 500_000 + tail, EnqueueBody)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"ttlSeconds":0}',
        b'{"ttlSeconds":700000}',
        b'{"keyThumbprint":"short"}',
        b'{"keyThumbprint":"' + b"a" * 43 + b'\\n"}',
        b'{"ttl":5}',
    ],
)
def test_bounds_of_an_invite(raw: bytes) -> None:
    with pytest.raises(BadRequest):
        decode(raw, InviteBody)


def test_a_text_is_a_payload() -> None:
    assert json.loads(bytes(text_payload('a"\n'))) == {"text": 'a"\n'}
