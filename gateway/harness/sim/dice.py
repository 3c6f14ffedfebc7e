"""Where a simulated world gets its chance from: one seed, one stream of numbers for each concern.

Streams are apart, so that switching one class of faults off leaves the draws of all others as they were: that
is what lets a failing world be made smaller.
"""

import random  # noqa: TID251 - seeded: the one generator of a world in which nothing else is random
from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

_T = TypeVar("_T")


class Dice:
    """Draws that depend on the seed and the concern's name alone; the same on every Python and machine."""

    def __init__(self, seed: int, concern: str) -> None:
        self._random = random.Random(int.from_bytes(sha256(f"{seed}/{concern}".encode()).digest()))  # noqa: S311

    def fraction(self) -> float:
        """An even draw from [0, 1)."""
        return self._random.random()

    def chance(self, probability: float) -> bool:
        """Whether something of this probability happens."""
        return self._random.random() < probability

    def between(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def among(self, things: Sequence[_T]) -> _T:
        """One of them."""
        return things[int(self._random.random() * len(things))]

    def spaced(self, mean_us: int) -> int:
        """A wait with this mean, at least a microsecond; never above ten times the mean."""
        return max(1, min(10 * mean_us, int(mean_us * self._random.expovariate(1.0))))

    def octets(self, size: int) -> bytes:
        """So many bytes."""
        return self._random.getrandbits(8 * size).to_bytes(size)
