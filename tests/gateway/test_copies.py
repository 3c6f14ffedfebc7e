"""What links see of copies: the latest extent, and pages from memory only where they follow on."""

from gateway.copies import Copies
from gateway.engine.effects import CopyChanged
from outbox.chain import Checkpoint, Entry, Page
from outbox.copying import begun, grown, trimmed
from outbox.ids import Epoch, NodeId, Seq

EPOCHS = [Epoch(f"00000{number}-0123456789ab") for number in (1, 2)]
A = NodeId("a")


def page(first: int, last: int, epoch: Epoch = EPOCHS[0], size: int = 1) -> Page:
    entries = tuple(Entry(Seq(seq), b"", b"x" * size) for seq in range(first, last + 1))
    return Page(epoch, entries, Checkpoint("mesh", A, epoch, Seq(last), b"", b""))


def test_the_latest_epoch_counts() -> None:
    old, new = begun(A, 1, page(1, 9), 0), begun(A, 2, page(1, 2, EPOCHS[1]), 0)
    copies = Copies([old, new])
    assert copies.nodes() == [A]
    assert copies.get(A) == new
    assert copies.after(A, 0) is None


def test_new_pages_are_in_memory_and_old_ones_are_not() -> None:
    copy = begun(A, 1, page(1, 3), 0)
    copies = Copies([copy])
    copies.changed(CopyChanged(A, copy := grown(copy, page(4, 4)), page(4, 4)))
    copies.changed(CopyChanged(A, copy := grown(copy, page(5, 6)), page(5, 6)))
    assert copies.get(A) == copy
    assert copies.after(A, 3) == page(4, 6)
    assert copies.after(A, 2) is None
    copies.changed(CopyChanged(A, rest := trimmed(copy, Seq(3), 3, 0), None))
    assert copies.get(A) == rest
    assert copies.after(A, 3) == page(4, 6)


def test_a_copy_that_is_begun_anew_or_gone_leaves_nothing_in_memory() -> None:
    copies = Copies([])
    copies.changed(CopyChanged(A, begun(A, 1, page(1, 3), 0), page(1, 3)))
    later = page(1, 1, EPOCHS[1])
    copies.changed(CopyChanged(A, begun(A, 2, later, 0), later))
    assert copies.after(A, 0) == later
    assert copies.after(A, 1) is None
    copies.changed(CopyChanged(A, None, None))
    assert copies.get(A) is None
    assert copies.nodes() == []


def test_the_memory_of_each_is_small() -> None:
    copies = Copies([])
    big = page(1, 1, size=100_000)
    copies.changed(CopyChanged(A, begun(A, 1, big, 0), big))
    assert copies.after(A, 0) is None
