from collections.abc import Callable

import msgspec
import pytest

from gateway.wire import pages
from gateway.wire.frames import Entries
from gateway.wire.limits import ENTRIES_MAX, PAYLOAD_BYTES_MAX
from gateway.wire.pages import join_page, page_bytes, split_page
from outbox.chain import Excerpt, Stub
from outbox.errors import BadCheckpoint, BadFrame, BrokenChain, MeshError, TooLarge
from outbox.ids import Epoch, NodeId, Seq
from outbox.limits import BODY_BYTES_MAX

NODE = NodeId("vps")
replace = msgspec.structs.replace


def split(frame: Entries) -> tuple[pages.EntriesHeader, bytes]:
    """The payload in one piece, as it comes."""
    header, parts = split_page(frame)
    return header, b"".join(parts)


def test_a_page_comes_back_as_it_went(page: Excerpt) -> None:
    header, payload = split(Entries(NODE, page))
    assert header.sizes == ((15, 23), (2, 0))
    assert join_page(header, memoryview(payload)) == Entries(NODE, page)
    assert page_bytes(page) == len(payload)


@pytest.mark.parametrize(
    "payload_change", [lambda raw: raw[:-1], lambda raw: raw + b"x", lambda raw: raw[:0]]
)
def test_sizes_must_add_up(page: Excerpt, payload_change: Callable[[bytes], bytes]) -> None:
    header, payload = split(Entries(NODE, page))
    with pytest.raises(BadFrame, match="add up"):
        join_page(header, memoryview(payload_change(payload)))


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda page: replace(page, entries=()), BrokenChain),
        (lambda page: replace(page, entries=page.entries[::-1]), BrokenChain),
        (lambda page: replace(page, entries=page.entries[:1]), BadCheckpoint),
        (lambda page: replace(page, epoch=Epoch("000002-0123456789ab")), BadCheckpoint),
        (lambda page: replace(page, checkpoint=replace(page.checkpoint, node=NodeId("lab"))), BadCheckpoint),
        (lambda page: replace(page, checkpoint=replace(page.checkpoint, seq=Seq(41))), BadCheckpoint),
        (lambda page: replace(page, entries=page.entries * ENTRIES_MAX), TooLarge),
    ],
)
def test_a_page_that_is_none_does_not_leave(
    page: Excerpt, spoil: Callable[[Excerpt], Excerpt], error: type[MeshError]
) -> None:
    with pytest.raises(error):
        split_page(Entries(NODE, spoil(page)))


def test_a_page_above_the_frame_limit_does_not_leave(page: Excerpt) -> None:
    body = bytes(BODY_BYTES_MAX)
    count = PAYLOAD_BYTES_MAX // BODY_BYTES_MAX + 1
    entries = tuple(replace(page.entries[0], seq=Seq(41 + place), body=body) for place in range(count))
    checkpoint = replace(page.checkpoint, seq=entries[-1].seq)
    with pytest.raises(TooLarge, match="bytes"):
        split_page(Entries(NODE, Excerpt(page.epoch, entries, checkpoint)))


def test_the_module_copies_bytes_out_of_the_message(page: Excerpt) -> None:
    header, payload = split(Entries(NODE, page))
    buffer = bytearray(payload)
    joined = pages.join_page(header, memoryview(buffer))
    buffer[:] = bytes(len(buffer))
    assert joined.page == page


def test_a_body_that_does_not_travel_is_there_as_its_hash(page: Excerpt) -> None:
    part = replace(page, entries=(page.entries[0], Stub(Seq(42), b"{}", b"h" * 32)))
    header, payload = split(Entries(NODE, part, 5))
    assert (header.sizes, header.ask) == (((15, 23), (2, None)), 5)
    assert payload.endswith(b"{}" + b"h" * 32)
    assert page_bytes(part) == len(payload)
    assert join_page(header, memoryview(payload)) == Entries(NODE, part, 5)
