"""Pure parts of copies: growth and trimming agree on bytes and places, and a cursor has one answer."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from outbox.chain import Checkpoint, Entry, Head, Page, extend, genesis
from outbox.copying import anchor, begun, copy_after, follows, grown, hash_at, known_before, trimmed
from outbox.errors import CursorError
from outbox.ids import Epoch, MeshId, NodeId, Seq

EPOCHS = [Epoch(f"00000{number}-0123456789ab") for number in (1, 2, 3)]
MESH, MBP = MeshId("mesh"), NodeId("mbp")


def page(first: int, last: int, epoch: Epoch = EPOCHS[0]) -> Page:
    entries = tuple(Entry(Seq(seq), b"{}", b"x" * seq) for seq in range(first, last + 1))
    return Page(epoch, entries, Checkpoint("mesh", MBP, epoch, Seq(last), bytes([last]) * 32, b"s"))


def test_growth_and_trimming() -> None:
    copy = begun(MBP, 3, page(4, 5), 70)
    assert (copy.first, copy.last, copy.bytes, copy.number, copy.oldest_at_ms) == (4, 5, 13, 3, 70)
    assert follows(copy, page(6, 6))
    assert not follows(copy, page(7, 7))
    assert not follows(None, page(1, 1))
    more = grown(copy, page(6, 6))
    assert (more.first, more.last, more.bytes, more.hash) == (4, 6, 21, bytes([6]) * 32)
    rest = trimmed(more, Seq(5), 13, 90)
    assert (rest.first, rest.last, rest.bytes, rest.oldest_at_ms) == (6, 6, 8, 90)


def test_where_the_hashes_of_a_copy_are_followed_from() -> None:
    whole, later = begun(MBP, 1, page(1, 3), 0), begun(MBP, 1, page(4, 5), 0)
    checkpoint = Head(EPOCHS[0], Seq(2), bytes(32))
    assert known_before(whole, MESH, None) == genesis(MESH, MBP, EPOCHS[0])
    assert known_before(later, MESH, None) is None
    assert known_before(whole, MESH, checkpoint) == known_before(later, MESH, checkpoint) == checkpoint
    said = replace(page(4, 5), before=b"h" * 32)
    assert anchor(said) == Head(EPOCHS[0], Seq(3), b"h" * 32)
    assert anchor(page(4, 5)) is None
    assert anchor(replace(page(1, 5), before=b"h" * 32)) is None


def test_a_hash_is_known_only_where_all_that_leads_there_is_here() -> None:
    start, entries = genesis(MESH, MBP, EPOCHS[0]), page(1, 3).entries
    assert hash_at(start, entries, Seq(3)) == extend(start, entries).hash
    assert hash_at(start, entries[1:], Seq(3)) == b"", "let go of by another connection"
    assert hash_at(None, (), Seq(3)) == b""


@given(
    spans=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5)), min_size=1, max_size=3),
    epoch=st.sampled_from(EPOCHS),
    seq=st.integers(0, 12),
)
def test_what_follows_a_cursor_follows_it(spans: list[tuple[int, int]], epoch: Epoch, seq: int) -> None:
    copies = [
        begun(MBP, number, page(first, first + more, EPOCHS[number]), 0)
        for number, (first, more) in enumerate(spans)
    ]
    try:
        found = copy_after(copies, Head(epoch, Seq(seq), b""))
    except CursorError:
        assert any(copy.epoch == epoch and not copy.first - 1 <= seq <= copy.last for copy in copies)
        return
    if found is None:
        assert all(copy.epoch < epoch or copy.first > 1 or seq == copy.last for copy in copies)
        return
    copy, start = found
    assert copy.first - 1 <= start < copy.last
    assert (copy.epoch, start) == (epoch, seq) or (copy.epoch > epoch and start == 0)
