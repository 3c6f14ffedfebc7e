"""Turns that agents held when this node turned out to have forgotten: nobody holds them any more.

All their leases end at once, so from then on nobody can answer or resume one. There may be tens of thousands,
so nobody looks at each of them then: the courier queues them again later, and their rows (which still say
"leased") are corrected with that, some in each tick. A restart in between recognises a row that is still
wrong by the node that sent the event: nothing of that node is dealt before all of its rows are right, so none
of its turns can be leased.
"""

from collections import deque
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from gateway.courier.courier import Courier
from gateway.engine.errands import Task
from gateway.engine.tick import Tick
from gateway.engine.turnkey import TurnKey, turn_key
from gateway.routing import inbox_stream
from outbox.ids import Epoch, NodeId
from outbox.records import Received, TurnState
from outbox.store import Store


def not_in_hand(row: Received) -> Received:
    """The row of a turn that nobody has, or not any more."""
    return replace(row, state=TurnState.QUEUED, lease_id=None, session=None)


class TakenBack:
    """Those whose rows are not written yet, by their keys; others that were in hands then are among them."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier
        self._keys: deque[TurnKey] = deque()
        self._doubted: Mapping[NodeId, Epoch] = {}
        """Senders whose turns were taken back before a restart, and not all of their rows corrected."""

    def load(self, store: Store) -> None:
        """What the engine before has left."""
        if any(row.kind == Task.HANDS for row in store.errands()):
            self._doubted = store.doubts()

    def admit(self, row: Received) -> Received:
        """A row that a new engine finds, as it is to be understood."""
        if row.state is not TurnState.LEASED or row.source not in self._doubted:
            return row
        self._keys.append(turn_key(row))
        return not_in_hand(row)

    def begin(self, sources: Iterable[NodeId]) -> None:
        """Nobody has what is in hands of these nodes."""
        self._keys += self._courier.end_leases(sources)

    def write(self, tick: Tick, most: int) -> int:
        """Let the next rows say so, at most so many; how many there were. Some may have ended since."""
        rows = min(most, len(self._keys))
        for key in (self._keys.popleft() for _ in range(rows)):
            stream = inbox_stream(key[2])
            self._courier.take_back(stream, key, tick.now.mono_ms)
            row = tick.store.received(*key)
            if row is None or row.state is not TurnState.LEASED:
                continue
            if self._courier.lease_of(stream, key) is None:
                tick.store.put_received(not_in_hand(row))
        return rows
