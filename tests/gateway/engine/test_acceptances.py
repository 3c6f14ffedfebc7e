"""What a node had accepted and has forgotten is sent again, a bounded part of it a tick."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from outbox.envelope import encode_payload
from outbox.ids import Epoch, NodeId, Seq
from outbox.kinds import Kind
from outbox.recall import StreamEpoch
from outbox.records import DeliveryState as S

X = NodeId("x")
FIRST, SECOND = Epoch("000001-0123456789ab"), Epoch("000002-aaaaaaaaaaaa")
ANOTHER_SECOND, THIRD = Epoch("000002-ffffffffffff"), Epoch("000003-aaaaaaaaaaaa")
FOURTH, FIFTH = Epoch("000004-bbbbbbbbbbbb"), Epoch("000005-bbbbbbbbbbbb")


@pytest.fixture
def told(routed: Any, stranger: Any) -> Any:
    """``x`` forgets: ``told.forgets(places…, began=epoch)`` says so to ``a``."""

    def forgets(*remembered: tuple[Epoch, int], began: Epoch) -> None:
        said = StreamEpoch(
            previous=remembered[-1][0], last_known=remembered[-1][1], reason="restore", remembered=remembered
        )
        event = stranger.event(
            kind=Kind.SIGNAL, source_agent_id=None, to_agent_id=None, payload=encode_payload(said)
        )
        trace = msgspec.structs.replace(event.trace, attempt=2, first_position=(began, 1))
        routed.hear(msgspec.structs.replace(event, trace=trace))

    routed.forgets = forgets
    return routed


def accepted(world: Any, *places: tuple[Epoch, int], **fields: Any) -> list[Any]:
    """Messages of ``ann`` that ``x`` has accepted at these places of its outbox."""
    events = [world.sent("a", "ann", "eve") for _ in places]
    store = world.store("a")
    store.begin()
    for event, (epoch, seq) in zip(events, places, strict=True):
        row = msgspec.structs.replace(
            store.delivery(event, X), state=S.ACCEPTED, accepted_epoch=epoch, accepted_seq=Seq(seq), **fields
        )
        store.put_delivery(row)
    store.commit()
    return events


def test_what_stands_behind_what_is_remembered_is_sent_again_whatever_epoch_it_stands_in(told: Any) -> None:
    places = [(FIRST, 9), (SECOND, 3), (SECOND, 4), (ANOTHER_SECOND, 1), (THIRD, 1), (FOURTH, 1)]
    events = accepted(told, *places)
    told.forgets((SECOND, 3), began=FOURTH)
    states = [told.delivery("a", event).state for event in events]
    assert states == [S.ACCEPTED, S.ACCEPTED, S.RETRY_PENDING, S.RETRY_PENDING, S.RETRY_PENDING, S.ACCEPTED]
    assert told.store("a").errands() == []


def test_of_each_epoch_so_much_as_is_remembered_of_it_counts(told: Any) -> None:
    events = accepted(told, (SECOND, 3), (SECOND, 4), (THIRD, 2), (THIRD, 3))
    told.forgets((SECOND, 3), (THIRD, 2), began=FOURTH)
    states = [told.delivery("a", event).state for event in events]
    assert states == [S.ACCEPTED, S.RETRY_PENDING, S.ACCEPTED, S.RETRY_PENDING]


def test_what_another_node_has_accepted_and_what_says_no_place_is_left_alone(told: Any) -> None:
    (elsewhere,) = accepted(told, (SECOND, 4))
    store = told.store("a")
    store.begin()
    store.put_delivery(msgspec.structs.replace(store.delivery(elsewhere, X), node=NodeId("y")))
    store.commit()
    (unplaced,) = accepted(told, (SECOND, 4))
    store.begin()
    store.put_delivery(
        msgspec.structs.replace(store.delivery(unplaced, X), accepted_epoch=None, accepted_seq=None)
    )
    store.commit()
    told.forgets((SECOND, 3), began=FOURTH)
    assert store.delivery(elsewhere, NodeId("y")).state is S.ACCEPTED
    assert store.delivery(unplaced, X).state is S.ACCEPTED


@pytest.mark.parametrize("restarts", [False, True])
def test_many_are_taken_back_in_pieces_also_after_a_restart(told: Any, *, restarts: bool) -> None:
    """The page is handled in one transaction; what it takes back is not."""
    told.share(2)
    events = accepted(told, *((SECOND, seq) for seq in range(4, 9)), next_at_ms=None)

    def lost() -> int:
        return sum(told.delivery("a", event).accepted_epoch is None for event in events)

    told.forgets((SECOND, 3), began=FOURTH)
    counts = [lost()]
    while told.store("a").errands():
        if restarts:
            told.restart("a")
        assert told.nodes["a"].engine.next_wake_ms(told.now()) == told.mono_ms
        told.tick("a")
        counts.append(lost())
    assert max(later - before for before, later in pairwise([0, *counts])) == 2
    assert counts[-1] == 5


def test_two_lapses_in_one_tick_share_its_bound(told: Any) -> None:
    told.share(3)
    events = accepted(told, (SECOND, 4), (FOURTH, 4))
    told.forgets((SECOND, 3), began=THIRD)
    told.forgets((FOURTH, 3), began=FIFTH)
    assert [told.delivery("a", event).accepted_epoch for event in events] == [None, None]


def test_an_epoch_that_cannot_be_is_quarantined(told: Any) -> None:
    told.forgets((Epoch("1,2"), 1), began=FOURTH)
    assert told.store("a").errands() == []
    assert [kind for kind, _ in told.incidents("a")] == ["quarantined"]
