"""What the judge allows a node to be wrong about the clock of another."""

from gateway.engine.limits import CLOCK_ROUNDING_MS
from gateway.harness.sim.trips import Trips
from outbox.ids import NodeId

A, B = NodeId("a"), NodeId("b")


def test_nothing_is_allowed_before_an_answer_nor_for_others() -> None:
    trips = Trips()
    trips.heard(A, B, 1, 400, at_ms=1_000)
    assert trips.within_ms(A, B, 1_000) == 0
    assert trips.within_ms(B, A, 2_000) == 0
    assert trips.within_ms(A, A, 2_000) == 0


def test_half_the_trip_of_the_answer_that_was_gone_by_then_is_allowed() -> None:
    trips = Trips()
    for at_ms, trip_ms in ((1_000, 400), (2_000, 2_000), (3_000, 200), (4_000, 198)):
        trips.heard(A, B, 1, trip_ms, at_ms)
    allowed = [trips.within_ms(A, B, at_ms) for at_ms in (1_001, 2_001, 3_001, 4_001)]
    assert allowed == [half_ms + CLOCK_ROUNDING_MS for half_ms in (200, 200, 200, 99)]


def test_a_new_connection_counts_anew() -> None:
    trips = Trips()
    trips.heard(A, B, 1, 20, at_ms=1_000)
    trips.heard(A, B, 2, 2_000, at_ms=2_000)
    assert trips.within_ms(A, B, 1_500) == 10 + CLOCK_ROUNDING_MS
    assert trips.within_ms(A, B, 2_500) == 1_000 + CLOCK_ROUNDING_MS
