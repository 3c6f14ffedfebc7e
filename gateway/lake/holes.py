"""Holes of a lake: places of an outbox before others that are there, which nobody has signed away.

A copy that was trimmed begins late, and may have been read first. Whoever is read later may have what lies
before; its writer may, or signs that it has forgotten it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from gateway.lake.lake import Lake
from outbox.chain import Head, genesis
from outbox.ids import MeshId, NodeId, Seq
from spark.spans import Span, without


class Hole(NamedTuple):
    """Places of one epoch that are missing: those after ``after`` up to ``last``."""

    after: Head
    last: Seq


def holes(lake: Lake, mesh: MeshId, node: NodeId) -> Iterator[Hole]:
    """Those of an outbox, oldest first, as they are when each is asked for.

    One that begins where its writer's own word ends is left as it is. Raises LakeDamaged, LakeUnreachable.
    """
    for epoch, spans in lake.held(node).items():
        for before, first in _breaks(spans):
            due = Seq(before.last + 1 if before else 1)
            lost = next(without(Span(due, Seq(first - 1)), lake.forgotten((node, epoch))), None)
            if lost is not None and lost.first == due:
                after = lake.end(mesh, (node, epoch), before) if before else genesis(mesh, node, epoch)
                yield Hole(after, lost.last)


def _breaks(spans: list[Span]) -> Iterator[tuple[Span | None, Seq]]:
    """Where a file does not follow on: the one before it, if any, and where it begins."""
    before: Span | None = None
    for span in spans:
        if span.first > (before.last + 1 if before else 1):
            yield before, span.first
        before = span
