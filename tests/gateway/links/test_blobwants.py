import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.links.blobwants import Asked, Wanted
from gateway.links.errors import CreditOverrun
from gateway.links.limits import BLOB_WANTS_MAX, BLOB_WINDOW_BYTES_MAX
from gateway.wire.frames import BlobNone, BlobPiece, BlobRefusal, BlobWant
from outbox.blobref import BlobId

ONE, TWO = BlobId("1" * 64), BlobId("2" * 64)
NONE = BlobNone(ONE, BlobRefusal.ABSENT)


def piece(offset: int, size: int, sha256: BlobId = ONE) -> BlobPiece:
    return BlobPiece(sha256, offset, 100, bytes(size))


@given(st.lists(st.tuples(st.sampled_from([ONE, TWO]), st.integers(1, 50)), max_size=8), st.data())
def test_what_is_asked_at_one_end_is_answered_in_order_at_the_other(
    wants: list[tuple[BlobId, int]], data: st.DataObject
) -> None:
    asked, wanted, offset = Asked(), Wanted(), 0
    for sha256, size in wants:
        want = BlobWant(sha256, offset, size)
        offset += size
        asked.ask(want, 0)
        wanted.want(want)
    answered = 0
    while wanted:
        sha256, offset, size = wanted.next(data.draw(st.integers(1, 60)))
        if data.draw(st.booleans()):
            wanted.sent(size)
            answered += asked.came(piece(offset, size, sha256), 7) is not None
        else:
            wanted.refuse()
            asked.refused(BlobNone(sha256, BlobRefusal.GONE))
            answered += 1
    assert asked.bytes == 0
    assert answered == len(wants)


@pytest.mark.parametrize(
    "came", [piece(1, 5), piece(0, 11), piece(0, 5, TWO), piece(10, 1), BlobNone(TWO, BlobRefusal.ABSENT)]
)
def test_what_was_not_asked_for_next_ends_the_link(came: BlobPiece | BlobNone) -> None:
    asked = Asked()
    asked.ask(BlobWant(ONE, 0, 10), 0)
    with pytest.raises(CreditOverrun):
        asked.refused(came) if isinstance(came, BlobNone) else asked.came(came, 0)


def test_what_was_never_asked_for_ends_the_link() -> None:
    with pytest.raises(CreditOverrun):
        Asked().came(piece(0, 1), 0)
    with pytest.raises(CreditOverrun):
        Asked().refused(NONE)


def test_a_want_says_how_long_it_took_when_it_is_answered() -> None:
    asked = Asked()
    asked.ask(BlobWant(ONE, 0, 10), 100)
    assert asked.came(piece(0, 4), 130) is None
    assert asked.bytes == 6
    assert asked.came(piece(4, 6), 150) == 50


def test_nobody_asks_for_more_than_the_window() -> None:
    wanted = Wanted()
    wanted.want(BlobWant(ONE, 0, BLOB_WINDOW_BYTES_MAX))
    with pytest.raises(CreditOverrun):
        wanted.want(BlobWant(ONE, BLOB_WINDOW_BYTES_MAX, 1))
    wanted.sent(10)
    wanted.want(BlobWant(ONE, BLOB_WINDOW_BYTES_MAX, 10))
    wanted.refuse()
    assert wanted.next(100) == (ONE, BLOB_WINDOW_BYTES_MAX, 10)


def test_nobody_asks_for_a_great_many_small_stretches() -> None:
    wanted = Wanted()
    for offset in range(BLOB_WANTS_MAX):
        wanted.want(BlobWant(ONE, offset, 1))
    with pytest.raises(CreditOverrun):
        wanted.want(BlobWant(ONE, BLOB_WANTS_MAX, 1))
    wanted.refuse()
    wanted.want(BlobWant(ONE, BLOB_WANTS_MAX, 1))
