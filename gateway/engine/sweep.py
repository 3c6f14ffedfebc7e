"""Goes through all deliveries in some states a part at a time: state by state, in each from the oldest on.

Between two parts a delivery may change its state. If its new state comes later in the list it is met a
second time; if it came earlier it is not met at all. Whoever sweeps must see to it that neither does harm.
"""

import msgspec
from msgspec.structs import replace

from gateway.engine.deliveries import OLDEST, Along, place_of
from outbox.records import Delivery, DeliveryState
from outbox.store import Store


class _Place(msgspec.Struct, frozen=True):
    """Where to go on among the deliveries of a state."""

    state: DeliveryState
    after: Along = OLDEST


class Sweep:
    """How far one has come; ``written`` is what an earlier one has kept, or nothing."""

    def __init__(self, states: tuple[DeliveryState, ...], written: str = "") -> None:
        self._states = states
        self._place = msgspec.json.decode(written, type=_Place) if written else _Place(states[0])

    @property
    def written(self) -> str:
        """What to keep of it."""
        return msgspec.json.encode(self._place).decode()

    def take(self, store: Store, most: int) -> list[Delivery]:
        """The next rows, at most so many; fewer when these are the last."""
        rows: list[Delivery] = []
        for state in self._states[self._states.index(self._place.state) :]:
            if state is not self._place.state:
                self._place = _Place(state)
            rows += store.deliveries_in(state, self._place.after, most - len(rows))
            if len(rows) == most:
                self._place = replace(self._place, after=place_of(rows[-1]))
                break
        return rows
