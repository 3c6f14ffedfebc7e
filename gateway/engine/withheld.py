"""Turns that nobody is dealt yet, although they are accepted: what is known of their stream may not be all.

A stream that is *behind* its advertised head may still take back what it brought; a node that is *doubted*
has yet to say what of its events was dealt with here before this node forgot it. The first ends with time,
the second only with the answer, or when an operator says that none will come. A turn whose event names a
blob waits for that too. Whatever it waits for, it is dealt when nothing is left to wait for.
"""

from collections.abc import Mapping

from gateway.courier.courier import Courier
from gateway.engine.awaited import Awaited, is_missing
from gateway.engine.bloblife import BlobsMissing
from gateway.engine.errands import Task
from gateway.engine.inputs import Now
from gateway.engine.parked import Parked
from gateway.engine.tick import Tick
from gateway.engine.turnkey import TurnKey, turn_key
from gateway.routing import inbox_stream
from outbox.blobref import BlobId
from outbox.ids import Epoch, NodeId
from outbox.records import Received, TurnState
from outbox.store import Store


class Withheld:
    """What waits in the courier, by the node that it came from."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier
        self._parked = Parked()
        self._awaited = Awaited()
        self._doubted: Mapping[NodeId, Epoch] = {}
        self._arriving: set[str] = set()
        """Blobs that have come when this begins, and that turns still wait for."""

    def load(self, store: Store) -> None:
        """Who is doubted outlives the process."""
        self._doubted = store.doubts()
        self._arriving = {row.subject for row in store.errands() if row.kind == Task.ARRIVAL}

    def admit(self, store: Store, row: Received, now: Now) -> None:
        """A turn that is here again after a start waits while its source is doubted or its blob missing.

        One in a hand stays there: only when it comes back it waits.
        """
        if row.source in self._doubted:
            self._park(turn_key(row), now)
        if row.state is TurnState.QUEUED and (is_missing(store, row.blob) or row.blob in self._arriving):
            self._await(row)

    def take(self, tick: Tick, row: Received) -> None:
        """A turn that was just queued waits while its source is behind or doubted, or its blob missing."""
        if tick.peers.is_behind(row.source) or row.source in self._doubted:
            self._park(turn_key(row), tick.now)
        if is_missing(tick.store, row.blob):
            self._await(row)
            tick.effects.append(BlobsMissing())
        elif row.blob is not None and (Task.ARRIVAL, row.blob) in tick.errands:
            self._await(row)  # behind those that have waited

    def hold_back(self, tick: Tick, sources: set[NodeId]) -> None:
        """These streams have more to tell: what nobody was handed yet waits until it is read."""
        for item in self._courier.items() if sources else ():
            if item.id[0] in sources and not item.deliveries:
                self._park(item.id, tick.now)

    def stream_moved(self, source: NodeId, now: Now) -> None:
        """A stream goes on, and is not yet where it was advertised to be."""
        self._parked.moved(source, now.mono_ms)

    def go_on(self, source: NodeId, now: Now) -> None:
        """All that can be had of a stream was read: deal what waited for it, unless it is doubted."""
        if source in self._doubted:
            return
        for key in self._parked.release(source):
            if key not in self._awaited:
                self._courier.let_go(inbox_stream(key[2]), key, now.mono_ms)

    def doubt(self, tick: Tick) -> None:
        """Deal nothing more of nodes that have to say what was dealt with."""
        self._doubted = tick.store.doubts()
        for item in self._courier.items() if self._doubted else ():
            if item.id[0] in self._doubted:
                self._park(item.id, tick.now)

    def trust(self, tick: Tick, source: NodeId) -> None:
        """A node has said it: what is still open is dealt."""
        self._doubted = tick.store.doubts()
        if not tick.peers.is_behind(source):
            self.go_on(source, tick.now)

    def drop(self, key: TurnKey) -> None:
        """A turn waits no longer; one that does not wait is fine."""
        self._parked.drop(key)
        self._awaited.drop(key)

    def awaiting(self, blob: BlobId, most: int) -> list[TurnKey]:
        """Turns that wait for a blob, at most so many."""
        return self._awaited.turns(blob, most)

    def blob_here(self, row: Received, now: Now) -> None:
        """The blob of a turn has come: it is dealt unless it waits for something else."""
        key = turn_key(row)
        self._awaited.drop(key)
        if key not in self._parked:
            self._courier.let_go(inbox_stream(row.to_agent), key, now.mono_ms)

    def let_go_late(self, now: Now) -> None:
        """Deal what has waited for long enough."""
        for source in self._parked.due(now.mono_ms):
            self.go_on(source, now)

    def next_ms(self) -> int | None:
        """When the next one will have."""
        return self._parked.next_ms()

    def _await(self, row: Received) -> None:
        assert row.blob is not None
        key = turn_key(row)
        self._courier.withhold(inbox_stream(row.to_agent), key)
        self._awaited.add(row.blob, key)

    def _park(self, key: TurnKey, now: Now) -> None:
        if self._courier.withhold(inbox_stream(key[2]), key):
            self._parked.add(key, now.mono_ms)
