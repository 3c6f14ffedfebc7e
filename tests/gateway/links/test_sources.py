"""Where each stream is read: one place at a time, its writer first, never where somebody was caught."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.links.errors import TooManyStreams
from gateway.links.limits import (
    CHANGE_AFTER_MS,
    DISTRUST_MS,
    FLOOR_HOPELESS_LOOKS,
    FLOOR_LOOKS,
    OFFERS_MAX,
    STALLED_AFTER_MS,
    TRIED_AGAIN_MS,
)
from gateway.links.sources import Command, Notice, Sources
from gateway.wire.frames import Stock
from outbox.chain import Checkpoint, Head
from outbox.ids import Epoch, MeshId, NodeId, Seq

EPOCH = Epoch("000001-0123456789ab")
ME, A, B, SEED = (NodeId(name) for name in ("me", "a", "b", "seed"))


def stock(node: NodeId, last: int, first: int = 1, *, complete: bool = True) -> Stock:
    return Stock(node, EPOCH, first, last, b"\x00" * 32, complete)


def at(seq: int) -> Head:
    return Head(EPOCH, Seq(seq), b"")


def sources(**cursors: int) -> Sources:
    made = Sources(ME, {NodeId(node): at(seq) for node, seq in cursors.items()})
    made.members(frozenset({ME, A, B, SEED}))
    made.decide(0)
    return made


def reads(commands: list[Command]) -> list[tuple[int, str, bool]]:
    return [tuple(command) for command in commands]


def test_a_peers_own_outbox_is_read_as_soon_as_the_link_is_up() -> None:
    chosen = sources()
    chosen.opened(1, A)
    assert reads(chosen.decide(0)) == [(1, A, True)]
    assert chosen.decide(0) == []


def test_a_stream_is_read_from_a_seed_until_its_writer_is_there() -> None:
    chosen = sources()
    chosen.opened(1, SEED)
    chosen.decide(0)
    chosen.offers(1, [stock(SEED, 4), stock(A, 9), stock(ME, 5)], 0)
    assert reads(chosen.decide(0)) == [(1, A, True)]
    chosen.opened(2, A)
    assert reads(chosen.decide(0)) == [(1, A, False), (2, A, True)]
    chosen.closed(2)
    assert reads(chosen.decide(0)) == [(1, A, True)]
    chosen.closed(1)
    assert chosen.decide(0) == []


def test_a_relay_may_bring_a_later_epoch_from_its_beginning() -> None:
    chosen = sources(a=3)
    chosen.opened(1, SEED)
    chosen.decide(0)
    chosen.offers(1, [stock(A, 9)], 0)
    assert not chosen.goes_on_later(1, A)
    chosen.offers(1, [Stock(A, Epoch("000002-0123456789ab"), 1, 2, b"\x00" * 32)], 0)
    assert reads(chosen.decide(0)) == [(1, A, True)]
    assert chosen.goes_on_later(1, A)


@pytest.mark.parametrize(
    ("offer", "cursor"),
    [
        (stock(A, 9, complete=False), 3),
        (stock(A, 9, first=5), 3),
        (stock(A, 9, first=2), None),
        (stock(A, 2), 3),
        (Stock(A, Epoch("000002-0123456789ab"), 2, 9, b"\x00" * 32), 3),
        (Stock(A, Epoch("000000-0123456789ab"), 1, 9, b"\x00" * 32), 3),
        (stock(NodeId("nobody"), 9), 3),
    ],
)
def test_a_copy_that_cannot_be_followed_is_left_alone(offer: Stock, cursor: int | None) -> None:
    chosen = sources(**({} if cursor is None else {"a": cursor}))
    chosen.opened(1, SEED)
    chosen.decide(0)
    chosen.offers(1, [offer], 0)
    assert chosen.decide(0) == []


def test_a_stream_of_a_new_member_is_read_when_it_is_known() -> None:
    chosen = Sources(ME, {})
    chosen.opened(1, SEED)
    chosen.offers(1, [stock(A, 9)], 0)
    assert reads(chosen.decide(0)) == [(1, SEED, True)]
    chosen.members(frozenset({A}))
    assert reads(chosen.decide(0)) == [(1, A, True)]


def test_the_fullest_copy_is_taken_and_kept() -> None:
    chosen = sources()
    for link, peer, last in ((1, SEED, 5), (2, B, 8)):
        chosen.opened(link, peer)
        chosen.offers(link, [stock(A, last)], 0)
    assert (2, A, True) in reads(chosen.decide(0))
    chosen.offers(1, [stock(A, 20)], 0)
    assert chosen.decide(0) == []


def test_a_source_that_brings_nothing_is_left_for_another_one_and_tried_again() -> None:
    chosen = sources()
    chosen.opened(1, A)
    chosen.offers(1, [stock(A, 5)], 0)
    chosen.opened(2, SEED)
    chosen.offers(2, [stock(A, 5)], 0)
    chosen.decide(0)
    assert chosen.look(CHANGE_AFTER_MS - 1) == []
    assert reads(chosen.look(CHANGE_AFTER_MS)) == [(1, A, False), (2, A, True)]
    chosen.moved(A, at(5), CHANGE_AFTER_MS + 1)
    assert chosen.notices() == []
    assert reads(chosen.look(CHANGE_AFTER_MS + TRIED_AGAIN_MS)) == [(2, A, False), (1, A, True)]


def test_a_stall_is_told_once_and_ends_when_it_moves() -> None:
    chosen = sources()
    chosen.opened(1, A)
    chosen.offers(1, [stock(A, 5)], 0)
    chosen.decide(0)
    chosen.look(STALLED_AFTER_MS - 1)
    assert chosen.notices() == []
    chosen.look(STALLED_AFTER_MS)
    assert chosen.notices() == [Notice(A, A, stalled=True)]
    chosen.look(STALLED_AFTER_MS + 1)
    assert chosen.notices() == []
    chosen.moved(A, at(2), STALLED_AFTER_MS + 2)
    assert chosen.notices() == [Notice(A, A, stalled=False)]
    chosen.look(2 * STALLED_AFTER_MS + 1)
    assert chosen.notices() == []
    chosen.look(2 * STALLED_AFTER_MS + 2)
    assert chosen.notices() == [Notice(A, A, stalled=True)]


def test_a_stall_ends_with_the_link_that_had_more() -> None:
    chosen = sources()
    chosen.opened(1, A)
    chosen.offers(1, [stock(A, 5)], 0)
    chosen.look(STALLED_AFTER_MS)
    chosen.notices()
    chosen.closed(1)
    chosen.decide(STALLED_AFTER_MS)
    assert chosen.notices() == [Notice(A, A, stalled=False)]


def test_who_was_caught_brings_nothing_but_its_own_for_a_while() -> None:
    chosen = sources()
    chosen.opened(1, SEED)
    chosen.offers(1, [stock(SEED, 5), stock(A, 5)], 0)
    chosen.decide(0)
    chosen.distrust(SEED, 100)
    assert reads(chosen.decide(100)) == [(1, A, False)]
    assert chosen.look(100 + DISTRUST_MS - 1) == []
    assert reads(chosen.look(100 + DISTRUST_MS)) == [(1, A, True)]


def test_the_only_relay_is_asked_again_when_it_brings_nothing() -> None:
    chosen = sources()
    chosen.opened(1, SEED)
    chosen.offers(1, [stock(SEED, 5), stock(A, 5)], 0)
    chosen.decide(0)
    again = [(1, A, False), (1, A, True)]
    assert reads(chosen.look(STALLED_AFTER_MS - 1)) == []
    assert reads(chosen.look(STALLED_AFTER_MS)) == again, "and nobody asks the writer of a stream twice"
    assert reads(chosen.look(2 * STALLED_AFTER_MS - 1)) == []
    assert reads(chosen.look(2 * STALLED_AFTER_MS)) == again
    chosen.moved(A, at(5), 2 * STALLED_AFTER_MS)
    assert reads(chosen.look(3 * STALLED_AFTER_MS)) == []


def test_what_a_full_disk_refused_is_asked_for_again_over_the_same_link() -> None:
    chosen = sources()
    chosen.opened(1, A)
    chosen.decide(0)
    chosen.shun(1, A, 5_000)
    assert reads(chosen.decide(0)) == [(1, A, False)]
    assert chosen.look(4_999) == []
    assert reads(chosen.look(5_000)) == [(1, A, True)]


# --- below a floor


def floor(seq: int) -> Checkpoint:
    return Checkpoint(MeshId("m"), A, EPOCH, Seq(seq), b"h", b"")


def given_up(chosen: Sources, looks: int) -> list[int]:
    """In which of so many looks reading was told to go on at the floor."""
    found = []
    for number in range(1, looks + 1):
        chosen.look(number * 5_000)
        found += [number] * len(chosen.given_up())
    return found


def below(**last: int) -> Sources:
    """We stand at 3 of a, which has forgotten 8; links with a and with seeds that have it from 1."""
    chosen = sources(a=3)
    chosen.opened(1, A)
    chosen.offers(1, [stock(A, 20, first=9)], 0)
    for number, (peer, upto) in enumerate(last.items(), 2):
        chosen.opened(number, NodeId(peer))
        chosen.offers(number, [stock(A, upto)], 0)
    chosen.decide(0)
    return chosen


def test_what_its_writer_has_forgotten_is_read_from_a_seed_up_to_the_floor() -> None:
    chosen = below(seed=12)
    assert chosen.forgotten(floor(8))
    assert reads(chosen.decide(0)) == [(1, A, False), (2, A, True)]
    chosen.moved(A, at(5), 1)
    assert chosen.decide(1) == []
    chosen.moved(A, at(9), 2)
    assert reads(chosen.decide(2)) == [(2, A, False), (1, A, True)]
    assert chosen.given_up() == []


def test_who_has_read_nothing_begins_at_the_floor() -> None:
    chosen = sources()
    chosen.opened(1, A)
    assert not chosen.forgotten(floor(8))
    assert reads(chosen.decide(0)) == [(1, A, True)]
    assert given_up(chosen, 2 * FLOOR_LOOKS) == []


def test_who_begins_at_the_floor_reads_on_from_a_copy_that_begins_there_too() -> None:
    chosen = sources()
    chosen.opened(1, SEED)
    chosen.decide(0)
    chosen.offers(1, [stock(A, 22, first=6)], 0)
    assert chosen.decide(0) == [], "nothing was read, and what stands before is not there"
    chosen.moved(A, at(5), 1)
    assert reads(chosen.decide(1)) == [(1, A, True)]


def test_where_nobody_has_the_rest_reading_goes_on_at_the_floor() -> None:
    chosen = below(seed=3)
    chosen.forgotten(floor(8))
    assert reads(chosen.decide(0)) == [(1, A, False), (2, A, True)], "it may read more of it yet"
    assert given_up(chosen, FLOOR_HOPELESS_LOOKS) == [FLOOR_HOPELESS_LOOKS]
    chosen.moved(A, at(8), 0)
    assert reads(chosen.decide(0)) == [(2, A, False), (1, A, True)]


@pytest.mark.parametrize("trouble", ["distrusted", "slow", "unlinked", "none"])
def test_whoever_may_have_the_rest_is_waited_for_and_not_for_ever(trouble: str) -> None:
    chosen = below(**({} if trouble == "unlinked" else {"seed": 12}))
    chosen.members(frozenset({ME, A, SEED}), frozenset({ME, A, SEED}))
    chosen.forgotten(floor(8))
    chosen.decide(0)
    if trouble == "distrusted":
        chosen.distrust(SEED, 0)
    elif trouble == "slow":
        chosen.shun(2, A, 60_000)
    assert given_up(chosen, FLOOR_LOOKS) == [FLOOR_LOOKS]


def test_our_own_full_disk_is_nobodys_fault() -> None:
    chosen = below(seed=12)
    chosen.forgotten(floor(8))
    for _ in range(3):
        assert given_up(chosen, FLOOR_LOOKS - 1) == []
        chosen.refused_here(2, A, 0)


def test_a_process_without_links_waits_for_nothing() -> None:
    chosen = sources(a=3)
    chosen.forgotten(floor(8))
    assert given_up(chosen, 2 * FLOOR_LOOKS) == []


def test_a_slow_source_is_not_left_for_one_that_cannot_be_read() -> None:
    chosen = below(seed=12)
    chosen.forgotten(floor(8))
    chosen.decide(0)
    assert chosen.look(CHANGE_AFTER_MS) == []


def test_offers_are_bounded() -> None:
    chosen = sources()
    chosen.opened(1, SEED)
    many = [stock(NodeId(f"n{number}"), 1) for number in range(OFFERS_MAX + 1)]
    with pytest.raises(TooManyStreams):
        chosen.offers(1, many, 0)
    chosen.closed(9)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["open", "close", "offer", "moved", "shun", "distrust", "look"]),
        st.integers(1, 3),
        st.sampled_from([A, B, SEED]),
        st.integers(0, 9),
    ),
    max_size=40,
)


@given(STEPS)
def test_no_stream_is_ever_read_from_two_links_or_from_one_that_is_gone(steps: list[object]) -> None:
    chosen = sources()
    up: dict[int, NodeId] = {}
    reading: dict[NodeId, int] = {}
    now_ms = 0
    for what, link, node, number in steps:  # type: ignore[misc]
        now_ms += number * 10_000
        commands: list[Command] = []
        if what == "open" and link not in up:
            up[link] = node
            chosen.opened(link, node)
        elif what == "close":
            up.pop(link, None)
            chosen.closed(link)
            reading = {stream: by for stream, by in reading.items() if by != link}
        elif what == "offer" and link in up:
            chosen.offers(link, [stock(node, number)], now_ms)
        elif what == "moved":
            chosen.moved(node, at(number), now_ms)
        elif what == "shun":
            chosen.shun(link, node, now_ms + number)
        elif what == "distrust":
            chosen.distrust(node, now_ms)
        else:
            commands = chosen.look(now_ms)
        for command in [*commands, *chosen.decide(now_ms)]:
            assert command.link in up
            if command.read:
                assert command.stream not in reading
                reading[command.stream] = command.link
            else:
                assert reading.pop(command.stream) == command.link


def ended(chosen: Sources, end: Head | None, now_ms: int = 0) -> list[tuple[int, str, bool]]:
    chosen.ended({A: end})
    return reads(chosen.decide(now_ms))


def test_of_who_was_put_out_the_rest_is_read_and_then_no_more() -> None:
    chosen = sources(a=3)
    chosen.opened(1, SEED)
    chosen.offers(1, [stock(A, 9)], 0)
    chosen.decide(0)
    assert ended(chosen, at(7)) == []
    chosen.moved(A, at(6), 0)
    assert chosen.decide(0) == []
    chosen.moved(A, at(7), 0)
    assert chosen.look(STALLED_AFTER_MS + TRIED_AGAIN_MS) == []
    assert chosen.notices() == [], "what nobody reads does not stand still"
    chosen.opened(2, A)
    assert reads(chosen.decide(0)) == [(1, A, False)]


@pytest.mark.parametrize("end", [None, at(3), at(2), Head(Epoch("000000-0123456789ab"), Seq(9), b"")])
def test_nothing_is_read_behind_the_end(end: Head | None) -> None:
    chosen = sources(a=3)
    chosen.opened(1, SEED)
    chosen.opened(2, A)
    chosen.offers(1, [stock(A, 9)], 0)
    chosen.decide(0)
    assert ended(chosen, end) == [(2, A, False)]
    chosen.offers(1, [stock(A, 12)], 1)
    chosen.offers(2, [stock(A, 12)], 1)
    assert chosen.decide(1) == chosen.look(STALLED_AFTER_MS + TRIED_AGAIN_MS) == []
    assert chosen.notices() == []


def test_whose_end_is_taken_back_is_read_again() -> None:
    chosen = sources(a=3)
    chosen.opened(1, A)
    chosen.decide(0)
    assert ended(chosen, None) == [(1, A, False)]
    chosen.ended({})
    assert reads(chosen.decide(0)) == [(1, A, True)]
