"""Stretches of an epoch of an outbox: what files hold, what overlaps, what is left over."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from outbox.ids import Seq


class Span(NamedTuple):
    """The entries that a file holds, both ends included."""

    first: Seq
    last: Seq

    @property
    def file_name(self) -> str:
        """Twelve digits, so that text order is order."""
        return f"seq-{self.first:012d}-{self.last:012d}.parquet"

    @property
    def note_name(self) -> str:
        """Of a note about these entries."""
        return f"seq-{self.first:012d}-{self.last:012d}.json"


def overlaps(spans: Iterable[Span]) -> list[Span]:
    """The places that more than one of these files holds, as ranges in order that do not touch."""
    found: list[Span] = []
    reached = Seq(0)
    for span in sorted(spans):
        first, last = span.first, min(span.last, reached)
        if first <= last:
            if found and first <= found[-1].last + 1:
                found[-1] = Span(found[-1].first, max(found[-1].last, last))
            else:
                found.append(Span(first, last))
        reached = max(reached, span.last)
    return found


def without(span: Span, others: Iterable[Span]) -> Iterator[Span]:
    """What is left of a range without these, which are in order."""
    first = span.first
    for other in others:
        if other.last < first or other.first > span.last:
            continue
        if other.first > first:
            yield Span(first, Seq(other.first - 1))
        first = Seq(other.last + 1)
    if first <= span.last:
        yield Span(first, span.last)
