"""How round trips are measured, of whomever: so many callers, each asks again when it was answered."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

IN_FLIGHT = (1, 10, 100, 1000)


@dataclass(frozen=True)
class Sample:
    """One stretch of measuring."""

    per_s: float
    p50_ms: float
    p99_ms: float

    def print(self, name: str, in_flight: int) -> None:
        """One line."""
        print(
            f"{name:50} {in_flight:5} in flight {self.per_s:10,.0f} /s"
            f"   p50 {self.p50_ms:8.2f} ms   p99 {self.p99_ms:8.2f} ms"
        )


async def measure(ask: Callable[[], Awaitable[None]], in_flight: int, seconds: float) -> Sample:
    """Let ``in_flight`` callers ask for a while."""
    times: list[float] = []
    begun = time.perf_counter()
    end = begun + seconds

    async def caller() -> None:
        while (asked := time.perf_counter()) < end:
            await asyncio.wait_for(ask(), 60)
            times.append(time.perf_counter() - asked)

    await asyncio.gather(*(caller() for _ in range(in_flight)))
    took = time.perf_counter() - begun
    times.sort()
    return Sample(
        len(times) / took,
        times[len(times) // 2] * 1000,
        times[min(len(times) - 1, int(len(times) * 0.99))] * 1000,
    )


def median(samples: list[Sample]) -> Sample:
    """The middle of several rounds, each figure by itself."""
    middle = len(samples) // 2
    return Sample(
        sorted(sample.per_s for sample in samples)[middle],
        sorted(sample.p50_ms for sample in samples)[middle],
        sorted(sample.p99_ms for sample in samples)[middle],
    )
