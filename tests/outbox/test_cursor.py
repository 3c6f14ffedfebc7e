from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.chain import Head
from outbox.cursor import BEGINNING, check_cursor, page_end
from outbox.errors import CursorBelowFloor, CursorError, CursorPastEnd, ForeignEpoch, InvalidCursor
from outbox.ids import Epoch, Seq
from outbox.limits import SEQ_MAX

EPOCH, OTHER = Epoch("000001-0123456789ab"), Epoch("000002-0123456789ab")

seqs = st.integers(0, 20).map(Seq)


def at(seq: int, epoch: Epoch = EPOCH) -> Head:
    return Head(epoch, Seq(seq), b"")


@given(seqs, seqs, seqs)
def test_every_place_between_floor_and_head_can_be_read_from(one: Seq, two: Seq, three: Seq) -> None:
    floor, after, head = sorted((one, two, three))
    assert check_cursor(at(after), head=at(head), floor=floor) == after


@given(seqs, seqs)
def test_the_beginning_is_the_floor(one: Seq, two: Seq) -> None:
    floor, head = sorted((one, two))
    assert check_cursor(at(BEGINNING), head=at(head), floor=floor) == floor


@pytest.mark.parametrize(
    ("after", "error"),
    [
        (at(9), CursorPastEnd),
        (at(SEQ_MAX), CursorPastEnd),
        (at(2), CursorBelowFloor),
        (at(5, OTHER), ForeignEpoch),
        (at(0, OTHER), ForeignEpoch),
        (at(-1), InvalidCursor),
        (at(SEQ_MAX + 1), InvalidCursor),
        (at(5, Epoch("")), InvalidCursor),
        (at(5, Epoch("000001-0123456789ab\n")), InvalidCursor),
    ],
)
def test_each_wrong_place_has_its_own_error(after: Head, error: type[CursorError]) -> None:
    with pytest.raises(error) as caught:
        check_cursor(after, head=at(8), floor=Seq(3))
    assert type(caught.value) is error


@pytest.mark.parametrize("seq", [True, 1.0, "1", None])
def test_what_is_no_number_is_no_cursor(seq: Any) -> None:
    with pytest.raises(InvalidCursor):
        check_cursor(Head(EPOCH, seq, b""), head=at(8))


batch_lists = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 50)), max_size=8)


def ends(after: int, sizes: list[tuple[int, int]]) -> list[tuple[Seq, int]]:
    """Batches of (entries, bytes) as (last seq, bytes)."""
    found, last = [], after
    for entries, size in sizes:
        last += entries
        found.append((Seq(last), size))
    return found


@given(seqs, batch_lists, st.integers(0, 12), st.integers(0, 120))
def test_a_page_is_the_longest_row_of_whole_batches_within_both_limits(
    after: Seq, sizes: list[tuple[int, int]], entries_max: int, bytes_max: int
) -> None:
    batches = ends(after, sizes)
    end = page_end(after, batches, entries_max=entries_max, bytes_max=bytes_max)
    fitting = [
        last
        for number, (last, _) in enumerate(batches, 1)
        if last - after <= entries_max and sum(size for _, size in batches[:number]) <= bytes_max
    ]
    expected = fitting[-1:] or [last for last, _ in batches[:1]]
    assert [end] == (expected or [None])


def test_the_first_batch_is_read_even_when_it_is_too_large() -> None:
    assert page_end(Seq(0), [(Seq(900), 10**9), (Seq(901), 1)], entries_max=500, bytes_max=10) == 900
