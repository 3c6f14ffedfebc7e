"""All deliveries in some states, state by state, each from the oldest on, part by part.

One that changes its state meanwhile is met in the later one as well, or not at all when it went back: whoever
sweeps says what becomes of that.
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
