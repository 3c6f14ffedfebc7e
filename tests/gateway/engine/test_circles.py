"""Who is handed messages and sends others pays for as many as it was handed; nobody else does."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.circles import Circles
from gateway.engine.pace import PaceLimits
from outbox.ids import AgentId

ANN, BOB = AgentId("ann"), AgentId("bob")
LIMITS = PaceLimits(burst=3, per_minute=6)


def send(circles: Circles, agent: AgentId, now_ms: int = 0) -> bool:
    """Whether it may."""
    return circles.pay(agent, now_ms) == 0


def test_who_was_handed_nothing_pays_nothing() -> None:
    circles = Circles(LIMITS)
    circles.handed(BOB)
    assert all(send(circles, ANN) for _ in range(50))


def test_each_message_in_hand_is_paid_for_once() -> None:
    circles = Circles(LIMITS)
    circles.handed(ANN)
    assert all(send(circles, ANN) for _ in range(50))
    for _ in range(2):
        circles.handed(ANN)
        assert send(circles, ANN)
    circles.handed(ANN)
    assert circles.pay(ANN, 0) == 10_000
    assert send(circles, ANN, 10_000)


def test_a_day_of_reading_does_not_slow_down_who_writes_afterwards() -> None:
    circles = Circles(LIMITS)
    for _ in range(1_000):
        circles.handed(ANN)
    assert all(send(circles, ANN) for _ in range(50))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5_000)), max_size=60))
def test_what_answers_hand_overs_keeps_to_the_rate(steps: list[tuple[bool, int]]) -> None:
    """Of an agent that sends one message for each that it is handed, at most."""
    circles, now_ms, open_hands, sent = Circles(LIMITS), 0, 0, 0
    for handed, gap_ms in steps:
        now_ms += gap_ms
        if handed and open_hands < LIMITS.burst:
            circles.handed(ANN)
            open_hands += 1
        elif open_hands and send(circles, ANN, now_ms):
            open_hands -= 1
            sent += 1
    assert sent <= LIMITS.burst + now_ms / LIMITS.refill_ms + 1
