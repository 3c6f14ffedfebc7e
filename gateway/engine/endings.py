"""Whose deliveries are to be ended, since their key was revoked, and how far that has come.

Memory of one engine; a new one ends again what is left. What a node had said up to the place that its
revocation names may still come, and settles what it was owed: so its deliveries end once that was read, or
after a while in which nobody brought it.
"""

from typing import NamedTuple

from gateway.engine.limits import ENDED_UNREAD_AFTER_MS
from outbox.ids import EventId, NodeId
from outbox.records import Delivery, DeliveryState
from stateroom.view import View

_OPEN = (DeliveryState.EMITTED, DeliveryState.RETRY_PENDING, DeliveryState.ACCEPTED)
_FIRST = (-1, EventId(f"evt_{'0' * 32}"), None)


class Place(NamedTuple):
    """Where to go on among the deliveries of a state."""

    node: NodeId
    """Whose are to be ended."""
    state: DeliveryState
    after: tuple[int, EventId, NodeId | None]


class Scan:
    """One node after the other, each from its oldest delivery on."""

    def __init__(self) -> None:
        self._places: dict[NodeId, Place] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def begin(self, node: NodeId) -> None:
        """Look through all of a node; once more, if that has begun."""
        self._places[node] = Place(node, _OPEN[0], _FIRST)

    def next(self) -> Place | None:
        """Where to go on now."""
        return next(iter(self._places.values()), None)

    def went_on(self, place: Place, last: Delivery | None) -> None:
        """The rows up to ``last`` were looked at; None: to the end of their state."""
        if last is not None:
            after = (last.created_at_ms, last.event_id, last.node)
            self._places[place.node] = place._replace(after=after)
        elif place.state is _OPEN[-1]:
            del self._places[place.node]
        else:
            following = _OPEN[_OPEN.index(place.state) + 1]
            self._places[place.node] = Place(place.node, following, _FIRST)


class Endings:
    """Times are monotonic milliseconds."""

    def __init__(self) -> None:
        self.scan = Scan()
        """Whose deliveries are looked through now."""
        self._late: dict[NodeId, int] = {}
        """Who may still be read, and until when that is waited for."""
        self._ended: set[NodeId] = set()

    def see(self, view: View, here: NodeId, now_ms: int) -> list[NodeId]:
        """Who was revoked since the last view."""
        out = {node for node in view.revocations if view.revoked(node) is not None} - {here}
        self._ended &= out
        self._late = {node: at for node, at in self._late.items() if node in out}
        found = sorted(out - self._ended - self._late.keys())
        for node in found:
            self._late[node] = now_ms + ENDED_UNREAD_AFTER_MS
        return found

    def awaits(self, node: NodeId) -> bool:
        """Whether what a node had said before is still waited for."""
        return node in self._late

    def end(self, node: NodeId) -> None:
        """Nothing more will be heard of a node."""
        if self._late.pop(node, None) is not None:
            self._ended.add(node)
            self.scan.begin(node)

    def due(self, now_ms: int) -> list[NodeId]:
        """Who was waited for for long enough."""
        return [node for node, at in self._late.items() if at <= now_ms]

    def next_ms(self, now_ms: int) -> int | None:
        """When there is something to do."""
        return now_ms if self.scan else min(self._late.values(), default=None)
