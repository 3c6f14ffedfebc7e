"""What a process learns about its own outbox, as a table of knowledge and conclusions."""

import pytest

from gateway.engine.limits import CLAIMS_WAIT_MS, EPOCHS_BEGUN_MAX
from gateway.engine.own_stream import FORGETS, OwnStream, Reason, Standing
from outbox.ids import Epoch, NodeId, make_epoch

EPOCH = Epoch("000003-0123456789ab")
A, B = NodeId("a"), NodeId("b")


def standing(
    own: OwnStream, *, peers: frozenset[NodeId] = frozenset({A, B}), claims: frozenset[NodeId] = frozenset()
) -> Standing:
    return own.standing(EPOCH, peers, claims, 1000)


def test_the_standings() -> None:
    own = OwnStream(EPOCH)
    assert standing(own, peers=frozenset()) is Standing.ALONE
    assert standing(own) is Standing.UNPROVEN
    assert own.next_ms() is None
    own.answered(A, 900)
    assert standing(own) is Standing.PROVEN
    assert standing(own, claims=frozenset({B})) is Standing.WAITING
    assert standing(own, claims=frozenset({A})) is Standing.PROVEN, "it has said what it knows"
    assert own.next_ms() == 900 + CLAIMS_WAIT_MS
    assert own.standing(EPOCH, {A, B}, {B}, 900 + CLAIMS_WAIT_MS) is Standing.PROVEN


def test_what_is_shown_stays_shown() -> None:
    own = OwnStream(EPOCH)
    own.shown = True
    assert standing(own) is Standing.PROVEN
    assert own.next_ms() is None


@pytest.mark.parametrize(("heard", "due"), [(2, False), (3, True), (9, True)])
def test_a_head_of_this_or_a_later_epoch_makes_one_due(heard: int, due: bool) -> None:
    own = OwnStream(EPOCH)
    own.forgot(make_epoch(heard, b"\x01" * 6))
    assert own.is_due(EPOCH) is due
    assert own.next_ordinal(EPOCH) == max(heard, 3) + 1
    assert (standing(own) is Standing.FORGOTTEN) is due
    assert not own.is_due(make_epoch(own.next_ordinal(EPOCH), b"\x02" * 6))


NEXT = make_epoch(4, bytes(6))


@pytest.mark.parametrize("ask", [True, False])
@pytest.mark.parametrize("noted", Reason)
def test_a_note_makes_one_epoch_due_from_the_start(noted: Reason, *, ask: bool) -> None:
    own = OwnStream(EPOCH, noted, ask=ask)
    for _ in range(2):  # the transaction may have failed
        assert own.is_due(EPOCH)
        assert (own.reason(EPOCH), own.asks(EPOCH)) == (noted, ask)
        own.began(NEXT, noted)
    assert not own.is_due(NEXT)
    assert own.reason_of(NEXT) is noted


@pytest.mark.parametrize("ask", [True, False])
@pytest.mark.parametrize("noted", Reason)
def test_a_note_speaks_for_no_later_epoch(noted: Reason, *, ask: bool) -> None:
    own = OwnStream(EPOCH, noted, ask=ask)
    own.began(NEXT, noted)
    own.forgot(NEXT)
    assert own.is_due(NEXT)
    assert (own.reason(NEXT), own.asks(NEXT)) == (Reason.ROLLBACK, True)


@pytest.mark.parametrize(
    ("noted", "reason"),
    [
        (Reason.RESTORE, Reason.RESTORE),
        (Reason.ROLLBACK, Reason.ROLLBACK),
        (Reason.FAILED_SYNC, Reason.ROLLBACK),
    ],
)
def test_what_is_proved_before_the_noted_epoch_begins_counts_for_it(noted: Reason, reason: Reason) -> None:
    own = OwnStream(EPOCH, noted)
    own.forgot(make_epoch(7, bytes(6)))
    assert (own.reason(EPOCH), own.next_ordinal(EPOCH)) == (reason, 8)
    assert not own.is_due(make_epoch(8, bytes(6)))


def test_a_rollback_is_what_nobody_has_explained() -> None:
    own = OwnStream(EPOCH)
    own.forgot(EPOCH)
    assert (own.reason(EPOCH), own.reason_of(EPOCH)) == (Reason.ROLLBACK, None)
    assert {Reason.RESTORE, Reason.ROLLBACK} == FORGETS


def test_epochs_that_never_end_it_are_a_copys() -> None:
    own = OwnStream(EPOCH)
    for ordinal in range(EPOCHS_BEGUN_MAX):
        own.began(make_epoch(4 + ordinal, bytes(6)), Reason.ROLLBACK)
    own.forgot(make_epoch(9, bytes(6)))
    assert own.standing(make_epoch(6, bytes(6)), {A}, set(), 0) is Standing.COPIED
