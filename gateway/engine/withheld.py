"""Turns that nobody is dealt yet, although they are accepted: what is known of their stream may not be all.

A stream that is *behind* its advertised head may still take back what it brought: a later attempt that went
elsewhere, or the sender's dead letter. That wait ends when the stream is read to the head that its link
advertised, when that link is gone, or when the stream has not moved for ``BEHIND_MS_MAX``: then what was read
is all that can be had. A node that is *doubted* has yet to say what of its events was dealt with here before
this node forgot it; that ends only with the answer, or when an operator says that none will come. Both halt
the source in the courier, so nobody looks at its turns. A turn whose event names a blob waits for that too,
by itself. Whatever it waits for, it is dealt when nothing is left to wait for.
"""

from collections.abc import Mapping

from gateway.courier.courier import Courier
from gateway.courier.halts import Halt
from gateway.courier.timers import Timers
from gateway.engine.awaited import Awaited, is_missing
from gateway.engine.bloblife import BlobsMissing
from gateway.engine.errands import Task
from gateway.engine.inputs import Now
from gateway.engine.limits import BEHIND_MS_MAX
from gateway.engine.tick import Tick
from gateway.engine.turnkey import TurnKey, turn_key
from gateway.routing import inbox_stream
from outbox.blobref import BlobId
from outbox.ids import Epoch, NodeId
from outbox.records import Received, TurnState
from outbox.store import Store


class Withheld:
    """What waits in the courier, and for what."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier
        self._behind: Timers[NodeId] = Timers()
        """Streams that are waited for, and until when."""
        self._awaited = Awaited()
        self._doubted: Mapping[NodeId, Epoch] = {}
        self._arriving: set[str] = set()
        """Blobs that have come when this begins, and that turns still wait for."""

    def load(self, store: Store, now: Now) -> None:
        """Who is doubted outlives the process."""
        self._doubt(store, now)
        self._arriving = {row.subject for row in store.errands() if row.kind == Task.ARRIVAL}

    def admit(self, store: Store, row: Received) -> None:
        """A turn that is here again after a start waits while its blob is missing.

        One in a hand stays there.
        """
        if row.state is TurnState.QUEUED and (is_missing(store, row.blob) or row.blob in self._arriving):
            self._await(row)

    def take(self, tick: Tick, row: Received) -> None:
        """A turn that was just queued waits while its source is behind or doubted, or its blob missing."""
        if tick.peers.is_behind(row.source):
            self._wait_for(row.source, tick.now)
        if is_missing(tick.store, row.blob):
            self._await(row)
            tick.effects.append(BlobsMissing())
        elif row.blob is not None and (Task.ARRIVAL, row.blob) in tick.errands:
            self._await(row)  # behind those that have waited

    def hold_back(self, tick: Tick, sources: set[NodeId]) -> None:
        """These streams have more to tell: what nobody was handed yet waits until it is read."""
        for source in sources:
            self._wait_for(source, tick.now)

    def stream_moved(self, source: NodeId, now: Now) -> None:
        """A stream goes on, and is not yet where it was advertised to be: its bound begins anew."""
        if self._behind.at_ms(source) is not None:
            self._behind.set(source, now.mono_ms + BEHIND_MS_MAX)

    def go_on(self, source: NodeId, now: Now) -> None:
        """All that can be had of a stream was read: deal what waited for it, unless it is doubted."""
        if self._behind.at_ms(source) is not None:
            self._behind.cancel(source)
            self._judge(source, now)

    def doubt(self, tick: Tick) -> None:
        """Deal nothing more of nodes that have to say what was dealt with."""
        self._doubt(tick.store, tick.now)

    def trust(self, tick: Tick, source: NodeId) -> None:
        """A node has said it: what is still open is dealt."""
        self._doubted = tick.store.doubts()
        self._judge(source, tick.now)

    def drop(self, key: TurnKey) -> None:
        """A turn waits no longer; one that does not wait is fine."""
        self._awaited.drop(key)

    def awaiting(self, blob: BlobId, most: int) -> list[TurnKey]:
        """Turns that wait for a blob, at most so many."""
        return self._awaited.turns(blob, most)

    def blob_here(self, row: Received, now: Now) -> None:
        """The blob of a turn has come: it is dealt unless it waits for something else."""
        key = turn_key(row)
        self._awaited.drop(key)
        self._courier.let_go(inbox_stream(row.to_agent), key, now.mono_ms)

    def let_go_late(self, now: Now) -> None:
        """Deal what has waited for long enough."""
        for source in self._behind.pop_due(now.mono_ms):
            self._judge(source, now)

    def next_ms(self) -> int | None:
        """When the next one will have."""
        return self._behind.next_ms()

    def _await(self, row: Received) -> None:
        assert row.blob is not None
        key = turn_key(row)
        self._courier.withhold(inbox_stream(row.to_agent), key)
        self._awaited.add(row.blob, key)

    def _wait_for(self, source: NodeId, now: Now) -> None:
        if self._behind.at_ms(source) is None:
            self._behind.set(source, now.mono_ms + BEHIND_MS_MAX)
            self._judge(source, now)

    def _doubt(self, store: Store, now: Now) -> None:
        self._doubted = store.doubts()
        for source in self._doubted:
            self._judge(source, now)

    def _judge(self, source: NodeId, now: Now) -> None:
        behind = Halt.NEW if self._behind.at_ms(source) is not None else None
        self._courier.halt(source, Halt.ALL if source in self._doubted else behind, now.mono_ms)
