"""Below a floor: whoever has the rest is waited for, and nobody for ever."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.links.floors import Floors
from gateway.links.limits import (
    DISTRUST_MS,
    FLOOR_HOPELESS_LOOKS,
    FLOOR_LOOKS,
    LOOK_EVERY_S,
    STALLED_AFTER_MS,
)
from outbox.chain import Checkpoint, Head
from outbox.ids import Epoch, MeshId, NodeId, Seq

A, B = NodeId("a"), NodeId("b")
EPOCHS = (Epoch("000001-0123456789ab"), Epoch("000002-0123456789ab"))


def floor(seq: int, epoch: Epoch = EPOCHS[0], node: NodeId = A) -> Checkpoint:
    return Checkpoint(MeshId("m"), node, epoch, Seq(seq), b"h", b"")


def at(seq: int, epoch: Epoch = EPOCHS[0]) -> Head:
    return Head(epoch, Seq(seq), b"")


def test_a_floor_counts_for_who_has_begun_and_stands_below() -> None:
    floors = Floors()
    assert not floors.below(A, at(3)), "nobody has said anything"
    assert floors.told(floor(5))
    assert floors.below(A, at(4))
    assert not any(floors.below(A, cursor) for cursor in (None, at(0), at(5), at(1, EPOCHS[1])))
    assert floors.all_below({A: at(4), B: at(4)}) == [A]


def test_a_floor_only_rises() -> None:
    floors = Floors()
    floors.told(floor(5))
    assert not floors.told(floor(5))
    assert not floors.told(floor(4))
    assert floors.told(floor(1, EPOCHS[1]))
    assert floors.below(A, at(99))


def looks(floors: Floors, *, hope: bool) -> int:
    """How many looks it takes."""
    for number in range(1, 1000):
        if (found := floors.look(A, hope=hope)) is not None:
            assert found == floor(5)
            return number
    raise AssertionError("nobody goes on")


def test_where_nobody_can_have_the_rest_a_minute_is_enough() -> None:
    floors = Floors()
    floors.told(floor(5))
    assert looks(floors, hope=False) == FLOOR_HOPELESS_LOOKS
    assert looks(floors, hope=False) == FLOOR_HOPELESS_LOOKS, "what was told and lost is told again"


def test_hope_lasts_until_a_relay_that_was_caught_was_tried_again() -> None:
    floors = Floors()
    floors.told(floor(5))
    assert looks(floors, hope=True) == FLOOR_LOOKS
    assert FLOOR_LOOKS * LOOK_EVERY_S * 1000 >= DISTRUST_MS + STALLED_AFTER_MS


@given(st.lists(st.booleans(), max_size=3 * FLOOR_LOOKS))
def test_whoever_brings_something_is_waited_for_anew(came: list[bool]) -> None:
    floors, waited = Floors(), 0
    floors.told(floor(5))
    for something in came:
        if something:
            floors.came(A)
            waited = 0
            continue
        waited += 1
        assert (floors.look(A, hope=True) is not None) == (waited == FLOOR_LOOKS)
        waited %= FLOOR_LOOKS
