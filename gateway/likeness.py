"""Names that look like one that nobody knows: what to say to who has misspelt it.

Comparing two names takes up to a tenth of a millisecond, and a mesh may have thousands. So only those are
compared that have most letters in the same places, counted from either end.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from heapq import nlargest
from operator import eq

from gateway.limits import COMPARED_MAX

_APART = 3
_CUTOFF = 0.6


def alike(name: str, known: Iterable[str], count: int) -> tuple[str, ...]:
    """Up to ``count`` of the known names that look like this one, the likest first."""
    backwards = name[::-1]

    def in_place(other: str) -> int:
        return int(sum(map(eq, name, other)) + sum(map(eq, backwards, other[::-1])))

    near = (other for other in known if abs(len(other) - len(name)) <= _APART)
    return tuple(get_close_matches(name, nlargest(COMPARED_MAX, near, in_place), count, _CUTOFF))
