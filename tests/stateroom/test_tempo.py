import pytest

from outbox.rates import Meters
from stateroom.exchange import Awareness, Message, QueryAwareness, SyncStep1, SyncStep2, Update
from stateroom.limits import RESYNC_S, STATE_VECTOR_BYTES_MAX, WINDOW_S
from stateroom.tempo import RATES, weight

MESSAGES: list[Message] = [SyncStep1(b""), SyncStep2(b""), Update(b""), Awareness(()), QueryAwareness()]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_flood_is_read_at_its_rate(message: Message) -> None:
    meters, rate, now_ms, read = Meters(RATES), RATES[type(message)], 5_000.0, 0
    while now_ms <= 15_000:
        now_ms += meters.take(message, int(now_ms))
        read += 1
    assert read == pytest.approx(rate.burst + 10 * rate.per_s, rel=0.01, abs=2)


def test_long_state_vectors_are_read_by_their_bytes() -> None:
    meters, now_ms, read = Meters(RATES), 5_000.0, 0
    while now_ms <= 125_000:
        message = SyncStep1(bytes(STATE_VECTOR_BYTES_MAX))
        now_ms += meters.take(message, int(now_ms), weight(message))
        read += 1
    assert 2 <= read <= 6


@pytest.mark.parametrize("kind", [SyncStep2, Update])
def test_long_updates_are_read_by_their_bytes(kind: type[SyncStep2 | Update]) -> None:
    """Whatever their length: in ten seconds some six megabytes, two seconds of work."""
    for size in (2_048, 60_000, 500_000, 3_000_000):
        meters, now_ms, read = Meters(RATES), 5_000.0, 0
        while now_ms <= 15_000:
            message = kind(bytes(size))
            now_ms += meters.take(message, int(now_ms), weight(message))
            read += size
        assert read <= (RATES[kind].burst + 10 * RATES[kind].per_s) * 2_048 + size


def test_who_merges_what_it_writes_and_asks_now_and_then_never_waits() -> None:
    meters = Meters(RATES)
    for number in range(10_000):
        now_ms = int(number * WINDOW_S * 1000)
        assert meters.take(Update(b""), now_ms, weight(Update(bytes(2_000)))) == 0
        assert meters.take(Awareness(()), now_ms) == 0
    for number in range(100):
        assert meters.take(SyncStep1(b""), int(number * RESYNC_S * 1000)) == 0
