"""A lease outlives its gateway: who had a turn at a death has it at the next start, for a whole lease."""

import pytest

from gateway.judging.faults import FaultKind
from gateway.judging.lives import SEEN_BEFORE_DEATH_MS, Life, check_leases
from gateway.judging.witness import Witness
from outbox.ids import AgentId
from tests.gateway.judging.bygones import gave_up, past
from tests.gateway.judging.stories import ASKED, LAB, MBP

BO = AgentId("bo")
LEASE_MS = 3_000
LIVES = (
    Life(node=LAB, began_ms=0, ended_ms=10_000),
    Life(node=MBP, began_ms=0),
    Life(node=LAB, began_ms=12_000, ended_ms=20_000),
    Life(node=LAB, began_ms=21_000),
)
DEATH = 10_000


def kinds(*sightings: tuple[int, str], back: str = "") -> list[FaultKind]:
    seen = Witness()
    for count, (at_ms, lease) in enumerate(sightings, 1):
        seen.saw(
            at_ms=at_ms, agent=BO, node=LAB, event_id=ASKED, lease_id=lease, delivery_count=count,
            resumed=False,
        )  # fmt: skip
    if back:
        seen.gives_back(BO, ASKED, back)
    return [fault.kind for fault in check_leases(LIVES, seen.account(), LEASE_MS)]


def test_a_turn_that_is_dealt_anew_right_after_a_start_had_a_live_lease():
    assert kinds((DEATH - 100, "one"), (12_500, "two")) == [FaultKind.TURN]
    assert kinds((DEATH + 100, "one"), (14_999, "two")) == [FaultKind.TURN], (
        "read late, dealt before the death"
    )


@pytest.mark.parametrize(
    "sightings",
    [
        ((DEATH - 100, "one"), (12_500, "one")),
        ((DEATH - 100, "one"), (12_000 + LEASE_MS, "two")),
        ((DEATH - SEEN_BEFORE_DEATH_MS - 1, "one"), (12_500, "two")),
        ((DEATH - 100, "one"), (21_500, "two")),
        ((13_000, "one"), (16_000, "two")),
        ((DEATH - 100, "one"),),
    ],
    ids=["resumed", "run out", "nearly run out", "two deaths later", "in one life", "once"],
)
def test_any_other_turn_was_dealt_rightly(sightings: tuple[tuple[int, str], ...]):
    assert kinds(*sightings) == []


def test_a_turn_that_was_given_back_may_come_again_at_once():
    assert kinds((DEATH - 100, "one"), (12_500, "two"), back="one") == []


def test_a_node_that_was_put_back_has_forgotten_its_leases():
    seen, moment = Witness(), 0
    for order, lease in enumerate(("lease_1", "lease_2")):
        seen.saw(
            at_ms=DEATH - 100 + 2_200 * order, agent=BO, node=LAB, event_id=ASKED, lease_id=lease,
            delivery_count=1, resumed=False,
        )  # fmt: skip
        moment = moment or seen.mark()
    account = seen.account()
    assert [fault.kind for fault in check_leases(LIVES, account, LEASE_MS)] == [FaultKind.TURN]
    assert [*check_leases(LIVES, account, LEASE_MS, gave_up(past(order=moment)))] == []
    elsewhere = gave_up(past(order=moment, node=MBP))
    assert [fault.kind for fault in check_leases(LIVES, account, LEASE_MS, elsewhere)] == [FaultKind.TURN]
