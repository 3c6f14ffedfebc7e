"""Copies of other outboxes: which are kept, and how much of them.

A page is added in the transaction that moves the cursor past it, so a copy never lags behind what was handled
and never runs ahead of it. What is too old or too much is let go of at the beginning, a few batches a tick.
"""

from collections.abc import Iterable

from gateway.engine.awaited import is_missing
from gateway.engine.bloblife import BlobsMissing
from gateway.engine.effects import CopyChanged
from gateway.engine.limits import TRIM_BATCHES, TRIM_EVERY_MS
from gateway.engine.policy import MirrorPolicy
from gateway.engine.tick import Tick
from outbox.blobref import named_blob
from outbox.chain import Page
from outbox.ids import Epoch, NodeId
from outbox.records import Copy


class Mirrors:
    """What is held of others; a picture of the store that lives as long as the engine."""

    def __init__(self, policy: MirrorPolicy, copies: Iterable[Copy]) -> None:
        self._policy = policy
        self._copies: dict[tuple[NodeId, Epoch], Copy] = {(copy.source, copy.epoch): copy for copy in copies}
        self._bytes = sum(copy.bytes for copy in self._copies.values())
        self._look_at_ms = 0

    def holds(self, node: NodeId) -> bool:
        """Whether a node's outbox is copied here."""
        return self._policy.holds(node)

    def keep(self, tick: Tick, node: NodeId, page: Page) -> None:
        """Add a page that was verified and handled."""
        copy = tick.store.extend_copy(node, page, tick.now.wall_ms)
        self._put(copy)
        tick.effects.append(CopyChanged(node, copy, page))
        if any(is_missing(tick.store, named_blob(entry.body)) for entry in page.entries):
            tick.effects.append(BlobsMissing())
        self._trim(tick)

    def _trim(self, tick: Tick) -> None:
        for copy in self._too_much(tick):
            rest = tick.store.trim_copy(copy, TRIM_BATCHES)
            self._drop(copy)
            if rest is not None:
                self._put(rest)
            tick.effects.append(CopyChanged(copy.source, tick.store.copy(copy.source), None))

    def _too_much(self, tick: Tick) -> list[Copy]:
        """The largest copy while all are too large together; now and then those that begin too long ago."""
        found = []
        if self._bytes > self._policy.bytes_max:
            found.append(max(self._copies.values(), key=lambda copy: (copy.bytes, copy.source)))
        if tick.now.mono_ms >= self._look_at_ms:
            self._look_at_ms = tick.now.mono_ms + TRIM_EVERY_MS
            floor_ms = tick.now.wall_ms - self._policy.age_ms
            found += [copy for copy in self._copies.values() if copy.oldest_at_ms < floor_ms]
        return list({copy.number: copy for copy in found}.values())

    def _put(self, copy: Copy) -> None:
        self._drop(copy)
        self._copies[copy.source, copy.epoch] = copy
        self._bytes += copy.bytes

    def _drop(self, copy: Copy) -> None:
        before = self._copies.pop((copy.source, copy.epoch), None)
        self._bytes -= before.bytes if before is not None else 0
