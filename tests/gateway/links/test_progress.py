"""Progress is said once a second at most, its last word is never lost, and version 1 hears all of it."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.links.limits import SEEN_EVERY_MS
from gateway.links.progress import Progress
from gateway.wire.frames import Seen
from outbox.chain import Head
from outbox.ids import Epoch, NodeId, Seq

B, EPOCH = NodeId("b"), Epoch("000001-000000000001")


def head(seq: int) -> Head:
    return Head(EPOCH, Seq(seq), b"")


def test_the_first_page_is_said_at_once_and_the_rest_of_a_burst_together() -> None:
    progress = Progress(B)
    assert progress.take(0) is None
    assert progress.handled(head(1), 0)
    assert progress.take(0) == Seen(B, EPOCH, 1)
    assert [progress.handled(head(seq), seq) for seq in (2, 3)] == [False, False]
    assert progress.take(SEEN_EVERY_MS - 1) is None
    assert progress.take(SEEN_EVERY_MS) == Seen(B, EPOCH, 3)
    assert progress.take(10 * SEEN_EVERY_MS) is None, "nothing is said twice"


def test_version_1_hears_of_every_page() -> None:
    progress = Progress(B)
    progress.every_ms = 0
    for seq in (1, 2, 3):
        assert progress.handled(head(seq), 5)
        assert progress.take(5) == Seen(B, EPOCH, seq)


@given(st.lists(st.integers(0, 700), min_size=1, max_size=60))
def test_the_last_word_comes_and_none_comes_too_soon(gaps_ms: list[int]) -> None:
    progress, now_ms, said = Progress(B), 0, list[tuple[int, int]]()
    for seq, gap_ms in enumerate(gaps_ms, 1):
        now_ms += gap_ms
        if progress.handled(head(seq), now_ms):
            said += [(now_ms, seen.seq) for seen in [progress.take(now_ms)] if seen is not None]
    last = progress.take(now_ms + SEEN_EVERY_MS)
    assert len(gaps_ms) == (last.seq if last is not None else said[-1][1])
    assert all(after[0] - before[0] >= SEEN_EVERY_MS for before, after in pairwise(said))
