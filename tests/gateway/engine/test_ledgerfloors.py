"""What was forgotten on both sides and comes again from a node that went back: nothing is done twice."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.engine.inputs import FloorRead, Prune
from gateway.engine.ledgerfloors import lowered
from gateway.engine.letters import DEAD, about
from gateway.engine.own_stream import Reason
from outbox.ids import Epoch, EventId, NodeId, Seq, epoch_ordinal, make_epoch
from outbox.records import DeliveryState, LedgerFloor, TurnState
from stateroom.view import NodeView

A, B = NodeId("a"), NodeId("b")
S, T = DeliveryState, TurnState
FIRST, SECOND, THIRD = (make_epoch(ordinal, bytes(6)) for ordinal in (1, 2, 3))
COPY = make_epoch(2, b"copied")


@pytest.fixture
def pruned(mesh: Any) -> Any:
    """``a`` sent a message, was backed up, read its end, forgot it and said so; so ``b`` forgot its turn."""
    mesh.listen("b", "bob", credit=100)
    mesh.event = mesh.sent("a", "ann", "bob")
    mesh.backup = deepcopy(mesh.store("a"))
    mesh.meet()
    mesh.settle("b", "bob", mesh.event, lease_id=mesh.row("b", mesh.event).lease_id)
    mesh.meet()
    mesh.later = mesh.sent("a", "ann", "bob")
    mesh.meet()
    says(mesh, mesh.store("a").head().seq)
    prune(mesh)
    assert mesh.store("b").ledger(mesh.event) == []
    return mesh


def says(mesh: Any, floor_seq: int | None) -> None:
    """The record of ``a`` in the state room, with its floor in the first epoch."""
    store = mesh.store("a")
    floor = store.head_at(store.genesis().epoch, Seq(floor_seq)) if floor_seq is not None else None
    epoch = store.identity().epoch
    mesh.members[A] = NodeView(node=A, public_key=b"k" * 32, role="member", outbox_epoch=epoch, floor=floor)
    mesh.see("b")


def prune(mesh: Any) -> None:
    mesh.ask("b", Prune(next(mesh.reqs), force=False))


def go_back(mesh: Any, reason: Reason | None) -> None:
    """``a`` is what it was, and has found so."""
    mesh.come_back("a", mesh.backup, reason)
    mesh.answer("a", by="b")


def deal(mesh: Any) -> None:
    """Everything is carried, and what is due is sent again."""
    mesh.meet()
    mesh.advance(60_000)
    mesh.tick("a")
    mesh.meet()


def test_a_sender_that_went_back_does_not_have_it_done_again(pruned: Any) -> None:
    go_back(pruned, Reason.RESTORE)
    says(pruned, None)
    deal(pruned)
    assert pruned.store("b").ledger(pruned.event) == []
    assert pruned.delivery("a", pruned.event).state is S.PROCESSED, "the ACK of then is read once more"


def test_it_is_told_when_nobody_knows_the_end_any_more(pruned: Any) -> None:
    store = pruned.store("b")
    head = store.head()
    store.begin()
    store.move_floor(head.epoch, head.seq)
    store.commit()
    go_back(pruned, Reason.RESTORE)
    pruned.tick("a", FloorRead(B, store.floor()))
    deal(pruned)
    assert store.ledger(pruned.event) == []
    row = pruned.delivery("a", pruned.event)
    assert (row.state, row.error) == (S.DEAD_LETTER, "below_floor")
    assert (DEAD, about(row)) in pruned.incidents("a")


def test_so_it_stays_when_less_is_said_to_be_forgotten_and_rows_go_again(pruned: Any) -> None:
    kept = pruned.store("b").ledger_floor(A)
    go_back(pruned, Reason.RESTORE)
    pruned.meet()
    at = pruned.store("b").ledger_floor(A)
    assert at.seq < kept.seq, "what stood behind the backup is another history's"
    pruned.store("b").begin()
    old = replace(pruned.row("b", pruned.later), event_id=pruned.event, seq=Seq(1), state=T.DONE)
    pruned.store("b").put_received(old)
    pruned.store("b").commit()
    says(pruned, 1)
    prune(pruned)
    assert pruned.store("b").ledger(pruned.event) == []
    assert pruned.store("b").ledger_floor(A) == at


def test_what_it_says_of_less_does_not_lower_how_far_rows_were_forgotten(pruned: Any) -> None:
    """A turn that ends late goes by the word of now; what was forgotten before stays so."""
    store = pruned.store("b")
    kept = store.ledger_floor(A)
    assert kept.seq > 1
    store.begin()
    late = replace(pruned.row("b", pruned.later), event_id=EventId("evt_late"), seq=Seq(1), state=T.DONE)
    store.put_received(late)
    store.commit()
    says(pruned, 1)
    prune(pruned)
    assert store.ledger(late.event_id) == [], "it was forgotten by the word of now"
    assert store.ledger_floor(A) == kept


@pytest.mark.parametrize("told", [True, False], ids=["its record is of before", "its record is of now"])
def test_what_it_sent_before_it_knew_is_new(pruned: Any, told: bool) -> None:
    """Nobody was shown it: at its place another message stands in the history that all others know."""
    pruned.come_back("a", pruned.backup)
    new = pruned.sent("a", "ann", "bob")
    place = pruned.store("a").first_position(new)
    kept = pruned.store("b").ledger_floor(A)
    assert place <= (kept.epoch, kept.seq)
    pruned.answer("a", by="b")
    if not told:
        says(pruned, None)
    deal(pruned)
    assert pruned.delivery("a", new).state is S.ACCEPTED
    assert pruned.row("b", new).delivery_count == 1
    assert pruned.store("b").ledger(pruned.event) == []


def test_own_turns_go_by_the_own_floor_and_not_by_an_old_record(mesh: Any) -> None:
    mesh.live("a", "amy")
    mesh.listen("a", "amy")
    event = mesh.sent("a", "ann", "amy")
    mesh.settle("a", "amy", event, lease_id=mesh.row("a", event).lease_id)
    head = mesh.store("a").head()
    mesh.members[A] = NodeView(node=A, public_key=b"k" * 32, role="member", floor=head)
    mesh.see("a")
    mesh.ask("a", Prune(next(mesh.reqs), force=False))
    assert len(mesh.store("a").ledger(event)) == 1
    mesh.store("a").begin()
    mesh.store("a").move_floor(head.epoch, head.seq)
    mesh.store("a").commit()
    mesh.ask("a", Prune(next(mesh.reqs), force=False))
    assert mesh.store("a").ledger(event) == []


@pytest.mark.parametrize(
    ("kept", "history", "began", "lower"),
    [
        ((FIRST, 50), [(FIRST, 30)], SECOND, (FIRST, 30)),
        ((FIRST, 20), [(FIRST, 30)], SECOND, (FIRST, 20)),
        ((FIRST, 20), [(FIRST, 30), (SECOND, 4)], THIRD, (FIRST, 20)),
        ((SECOND, 3), [(FIRST, 30)], SECOND, (SECOND, 3)),
        ((THIRD, 3), [(FIRST, 30)], SECOND, (THIRD, 3)),
        ((COPY, 9), [(FIRST, 30)], SECOND, (FIRST, 30)),
        ((COPY, 9), [(FIRST, 30), (SECOND, 4)], THIRD, (FIRST, 30)),
        ((FIRST, 9), [(SECOND, 4)], THIRD, (FIRST, 9)),
    ],
    ids=[
        "behind the backup",
        "before it",
        "epochs before the last one",
        "said again",
        "said again, later",
        "a copy began it",
        "a copy began it, and another one followed",
        "older than what is told",
    ],
)
def test_a_new_epoch_leaves_places_to_another_history(
    kept: tuple[Epoch, int], history: list[tuple[Epoch, int]], began: Epoch, lower: tuple[Epoch, int]
) -> None:
    floor = LedgerFloor(source=A, epoch=kept[0], seq=Seq(kept[1]))
    told = [(epoch, Seq(seq)) for epoch, seq in history]
    assert lowered(floor, told, began) == LedgerFloor(source=A, epoch=lower[0], seq=Seq(lower[1]))


@given(
    st.tuples(st.integers(1, 5), st.integers(0, 9)),
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), unique_by=lambda place: place[0]),
)
def test_a_floor_never_rises_by_it_and_once_is_enough(
    kept: tuple[int, int], told: list[tuple[int, int]]
) -> None:
    def place(ordinal: int, seq: int) -> tuple[Epoch, Seq]:
        return make_epoch(ordinal, bytes(6)), Seq(seq)

    history, began = [place(*each) for each in sorted(told)], make_epoch(6, bytes(6))
    epoch, seq = place(*kept)
    floor = LedgerFloor(source=A, epoch=epoch, seq=seq)
    once = lowered(floor, history, began)
    assert (epoch_ordinal(once.epoch), once.seq) <= kept
    assert lowered(once, history, began) == once
