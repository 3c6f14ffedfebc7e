import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycrdt import Awareness as StockAwareness
from pycrdt import Doc, create_awareness_message, create_sync_message, create_update_message

from stateroom import varints
from stateroom.errors import InvalidMessage
from stateroom.exchange import (
    Awareness,
    Entry,
    Message,
    QueryAwareness,
    SyncStep1,
    SyncStep2,
    Update,
    decode,
    encode,
)

uints = st.integers(0, 2**53 - 1)
messages = st.one_of(
    st.builds(SyncStep1, st.binary(max_size=40)),
    st.builds(SyncStep2, st.binary(max_size=40)),
    st.builds(Update, st.binary(max_size=40)),
    st.builds(
        Awareness, st.lists(st.builds(Entry, uints, uints, st.text(max_size=9)), max_size=4).map(tuple)
    ),
    st.just(QueryAwareness()),
)


@given(messages)
def test_round_trip(message: Message) -> None:
    assert decode(encode(message)) == message


@given(messages, st.data())
def test_no_prefix_and_no_extension_of_a_frame_is_a_frame(message: Message, data: st.DataObject) -> None:
    frame = encode(message)
    cut = data.draw(st.integers(0, len(frame) - 1))
    for wrong in (frame[:cut], frame + b"\x00"):
        with pytest.raises(InvalidMessage):
            decode(wrong)


@given(st.binary(max_size=40))
def test_garbage_is_refused_or_read_to_the_byte(raw: bytes) -> None:
    try:
        message = decode(raw)
    except InvalidMessage:
        return
    assert encode(message) == raw


def test_frames_of_the_stock_python_client_are_read() -> None:
    doc = Doc()
    assert decode(create_sync_message(doc)) == SyncStep1(doc.get_state())
    assert decode(create_update_message(b"u")) == Update(b"u")
    awareness = StockAwareness(doc)
    awareness.set_local_state({"näme": "x"})
    frame = create_awareness_message(awareness.encode_awareness_update([awareness.client_id]))
    message = decode(frame)
    assert isinstance(message, Awareness)
    assert message.entries[0].client == doc.client_id


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"", "truncated"),
        (b"\x02\x00", "type"),
        (b"\x04", "type"),
        (b"\x80\x00\x00\x00", "varint"),
        (b"\x00\x03\x00", "sync_type"),
        (b"\x00\x80\x00\x00", "varint"),
        (b"\x00\x02\x05ab", "count"),
        (b"\x01\x01\x05", "count"),
        (b"\x01" + varints.chunk(b"\x01\x05\x01\x02\xff\xfe"), "utf8"),
        (b"\x01" + varints.chunk(varints.uint(600) + b"\x00" * 600), "count"),
        (b"\x00\x00" + varints.chunk(b"x" * 3_000_000), "size"),
        (b"\x00" * (17 * 1024 * 1024), "size"),
    ],
)
def test_refused_with_a_reason(frame: bytes, reason: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        decode(frame)
    assert caught.value.reason == reason
