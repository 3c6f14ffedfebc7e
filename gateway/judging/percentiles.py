"""Three percentiles of a handful of durations."""

import msgspec


class Percentiles(msgspec.Struct, frozen=True, rename="camel"):
    """Milliseconds."""

    p50: int
    p95: int
    p99: int


def percentiles(values: list[int]) -> Percentiles | None:
    """By the nearest rank; None of nothing."""
    if not values:
        return None
    ranked = sorted(values)
    return Percentiles(*(ranked[max(0, -(-len(ranked) * percent // 100) - 1)] for percent in (50, 95, 99)))
