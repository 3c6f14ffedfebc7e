"""Of which nodes more is to be asked than one tick may say, and how far that has come.

Memory of one engine. What is forgotten with it is asked when its promise is overdue.
"""

from typing import NamedTuple

from outbox.ids import EventId, NodeId
from outbox.records import Delivery, DeliveryState

_STATES = (DeliveryState.ACCEPTED, DeliveryState.SUPERSEDED)
_FIRST = (-1, EventId(f"evt_{'0' * 32}"), None)


class Place(NamedTuple):
    """Where to go on among the deliveries of a state."""

    node: NodeId
    """Which of them are to be asked about."""
    state: DeliveryState
    after: tuple[int, EventId, NodeId | None]


class Unasked:
    """One node after the other, each from its oldest delivery on."""

    def __init__(self) -> None:
        self._places: dict[NodeId, Place] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def begin(self, node: NodeId) -> None:
        """Ask a node about all; once more, if that has begun."""
        self._places[node] = Place(node, _STATES[0], _FIRST)

    def next(self) -> Place | None:
        """Where to go on now."""
        return next(iter(self._places.values()), None)

    def went_on(self, place: Place, last: Delivery | None) -> None:
        """The rows up to ``last`` were looked at; None: to the end of their state."""
        if last is not None:
            after = (last.created_at_ms, last.event_id, last.node)
            self._places[place.node] = place._replace(after=after)
        elif place.state is _STATES[-1]:
            del self._places[place.node]
        else:
            self._places[place.node] = Place(place.node, _STATES[-1], _FIRST)
