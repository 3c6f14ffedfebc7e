"""Turns that were in hands when this node went back to a backup: nobody has them, whatever their rows say.

That there are thousands of them is no reason to write thousands of rows in one tick. The courier has taken
them back at once, so nobody can answer or resume one; their rows follow part by part. A new engine knows a
row that is left by its source, of which nothing is dealt before all of them are written.
"""

from collections.abc import Callable, Mapping
from itertools import islice

from msgspec.structs import replace

from gateway.engine.errands import Task
from gateway.engine.tick import Tick
from gateway.engine.turnkey import TurnKey, turn_key
from outbox.ids import Epoch, NodeId
from outbox.records import Received, TurnState
from outbox.store import Store


def not_in_hand(row: Received) -> Received:
    """The row of a turn that nobody has, or not any more."""
    return replace(row, state=TurnState.QUEUED, lease_id=None, session=None)


class TakenBack:
    """Those whose rows are not written yet, by their keys."""

    def __init__(self) -> None:
        self._keys: dict[TurnKey, None] = {}
        self._doubted: Mapping[NodeId, Epoch] = {}
        """Whose turns an engine before has taken back."""

    def load(self, store: Store) -> None:
        """What the engine before has left."""
        if any(row.kind == Task.HANDS for row in store.errands()):
            self._doubted = store.doubts()

    def admit(self, row: Received) -> Received:
        """A row that a new engine finds, as it is to be understood."""
        if row.state is not TurnState.LEASED or row.source not in self._doubted:
            return row
        self.add(turn_key(row))
        return not_in_hand(row)

    def add(self, key: TurnKey) -> None:
        """A turn is taken back."""
        self._keys[key] = None

    def write(self, tick: Tick, most: int, lease_of: Callable[[Received], str | None]) -> int:
        """Let the next rows say so, at most so many; how many there were. Some may have ended since."""
        keys = list(islice(self._keys, most))
        for key in keys:
            del self._keys[key]
            row = tick.store.received(*key)
            if row is not None and row.state is TurnState.LEASED and lease_of(row) is None:
                tick.store.put_received(not_in_hand(row))
        return len(keys)
