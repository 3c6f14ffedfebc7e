"""Puts out whoever was revoked: links and sockets of its key close soon after the state room says so."""

import asyncio

import structlog

from gateway.door import CURSORS_ROOM, PIPE_ROOM, STATE_ROOM
from gateway.endpoints.turn_sockets import REVOKED, TurnSockets
from gateway.links.errors import LinkEnded, PeerRevoked
from gateway.links.limits import REVOKED_TOLD_WITHIN_S
from gateway.links.registry import Registry
from gateway.rooms import Rooms
from outbox.ids import NodeId
from stateroom.outflow import Closed
from stateroom.view import RevocationView, View

log = structlog.get_logger(__name__)

_CHANNELS = (STATE_ROOM, CURSORS_ROOM, PIPE_ROOM)


class Bouncer:
    """Sees every view; acts a moment later, so that who is put out hears of it first."""

    def __init__(self, here: NodeId, registry: Registry, rooms: Rooms, turns: TurnSockets) -> None:
        self._here = here
        self._turns = turns
        self._registry = registry
        self._rooms = rooms
        self._leaving: set[NodeId] = set()
        self._known: dict[NodeId, tuple[RevocationView, ...]] = {}

    def see(self, view: View) -> None:
        """The state room changed."""
        for node in view.revocations:
            open_ = any(self._registry.is_up(node, channel) for channel in _CHANNELS)
            if open_ and node not in self._leaving and view.revoked(node) is not None:
                self._leaving.add(node)
                asyncio.get_running_loop().call_later(REVOKED_TOLD_WITHIN_S, self._end, node)
        if (word := view.revoked(self._here)) is not None:
            self._turns.revoked(f"the key of {self._here} was revoked by {word.by}")
        if view.revocations != self._known:
            self._known = view.revocations
            self._tell(view)

    def _end(self, node: NodeId) -> None:
        log.warning("peer.revoked", peer=node)
        self._leaving.discard(node)
        why = PeerRevoked(f"the key of {node} was revoked", hint="ask the operator of a seed why")
        self._registry.end(node, why)
        self._rooms.end(node, Closed(REVOKED, PeerRevoked.code))

    def _tell(self, view: View) -> None:
        """Who is linked and has no part in the state room hears of revocations when a link begins."""
        for peer in self._registry.linked():
            aside = not (self._registry.is_up(peer, STATE_ROOM) or view.online(peer))
            if aside and view.revoked(peer) is None:
                self._registry.end(peer, LinkEnded("there is a revocation to tell of"))
