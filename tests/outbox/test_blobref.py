import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.blobref import OCTETS, BlobId, BlobRef, blob_id, blob_of, check_ref, named_blob
from outbox.envelope import Event, decode_event, encode_event
from outbox.errors import InvalidEvent, InvalidId
from outbox.ids import EventId, NodeId
from outbox.limits import BLOB_BYTES_MAX, MEDIA_TYPE_MAX

SHA = BlobId("ab" * 32)
NAMED = Event(
    event_id=EventId(f"evt_{1:032x}"),
    kind="message",
    source_node_id=NodeId("mbp"),
    created_at="2026-11-28T00:00:00.000Z",
    payload_ref=BlobRef(SHA, 7, "text/plain; charset=utf-8"),
)


def test_an_event_names_its_blob_on_the_wire() -> None:
    body = encode_event(NAMED)
    said = json.loads(body)["payloadRef"]
    assert said == {"sha256": SHA, "bytes": 7, "contentType": "text/plain; charset=utf-8"}
    assert decode_event(body) == NAMED
    assert blob_of(body) == NAMED.payload_ref
    assert named_blob(body) == SHA


@pytest.mark.parametrize("name", ["", "ab" * 31, "AB" * 32, "ab" * 32 + "\n", "../" + "ab" * 31, "zz" * 32])
def test_a_blobs_name_is_its_hash_and_nothing_else(name: str) -> None:
    with pytest.raises(InvalidId):
        blob_id(name)


@pytest.mark.parametrize(
    "changes",
    [
        {"sha256": "x"},
        {"bytes": -1},
        {"bytes": BLOB_BYTES_MAX + 1},
        {"bytes": True},
        {"contentType": ""},
        {"contentType": "text"},
        {"contentType": "text/plain\r\nX: y"},
        {"contentType": f"text/{'x' * MEDIA_TYPE_MAX}"},
    ],
)
def test_an_event_that_names_a_blob_badly_is_none_and_names_nothing(changes: dict[str, Any]) -> None:
    said = json.loads(encode_event(NAMED))
    said["payloadRef"] |= changes
    body = json.dumps(said).encode()
    with pytest.raises((InvalidEvent, InvalidId)):
        decode_event(body)
    assert named_blob(body) is None


def test_a_payload_stands_in_place_of_a_reference() -> None:
    said = json.loads(encode_event(NAMED)) | {"payload": {}}
    with pytest.raises(InvalidEvent, match="beside"):
        decode_event(json.dumps(said).encode())


def test_what_nobody_named_is_octets() -> None:
    check_ref(BlobRef(SHA, 0))
    assert BlobRef(SHA, 0).content_type == OCTETS


@given(st.binary() | st.recursive(st.none() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_whatever_stands_in_a_body_is_a_name_or_none(what: Any) -> None:
    raw = what if isinstance(what, bytes) else json.dumps({"payloadRef": what}).encode()
    assert blob_of(b'"payloadRef"' + raw) is None
    assert blob_of(raw) is None
