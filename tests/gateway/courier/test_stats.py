from gateway.courier.stats import Counters, StreamStats


def test_age_is_counted_from_the_oldest_item() -> None:
    stats = StreamStats(depth=1, in_flight=0, totals=Counters(), oldest_at_ms=100)
    assert stats.oldest_age_ms(350) == 250


def test_an_empty_stream_has_no_age() -> None:
    assert StreamStats(depth=0, in_flight=0, totals=Counters(), oldest_at_ms=None).oldest_age_ms(350) == 0
