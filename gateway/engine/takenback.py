"""Turns that agents held when this node turned out to have forgotten: nobody holds them any more.

The courier takes all of them back at once, so from then on nobody can answer or resume one. There may be
thousands, so their rows (which still say "leased") are corrected later, some in each tick. A restart in
between recognises a row that is still wrong by the node that sent the event: nothing of that node is dealt
before all of its rows are right, so none of its turns can be leased.
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
        """Senders whose turns were taken back before a restart, and not all of their rows corrected."""

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
