"""Keeps the sockets up that this node dials: one for each peer and channel, for ever.

Whom to dial is decided in ``contacts``. Of two nodes that can both dial, the one with the smaller name does
so at once, the other one only when nobody has come for a while; so they do not meet twice, and a node that
nobody can reach still reaches everybody.
"""

import asyncio

import structlog
from websockets.asyncio.client import ClientConnection

from auth.gateway_proofs import Pin
from gateway.clock import Clock
from gateway.door import CURSORS_ROOM, PIPE_ROOM, STATE_ROOM
from gateway.errors import Denied
from gateway.links.contacts import Contact, contacts, first_wait_s
from gateway.links.limits import DEFER_S, REVOKED_TOLD_WITHIN_S, ROOM_PEERS_MAX
from gateway.links.link import Link
from gateway.links.local import Local
from gateway.links.reach import Reach
from gateway.links.registry import Registry
from gateway.links.socket import DialledSocket
from gateway.links.tickets import TicketOffice
from gateway.rooms import Rooms
from gateway.wire.limits import FRAME_BYTES_MAX
from outbox.ids import NodeId
from stateroom.dialer import Dialer, DialReport
from stateroom.sockets import recv_of, send_of
from stateroom.view import NodeView, View

log = structlog.get_logger(__name__)

PATHS = {
    STATE_ROOM: "/ansible/yjs/state",
    CURSORS_ROOM: "/ansible/yjs/cursors",
    PIPE_ROOM: "/ansible/pipe",
}


class Peering:
    """Keeps this node's outgoing sockets as the state room asks for them."""

    def __init__(
        self,
        local: Local,
        registry: Registry,
        rooms: Rooms,
        office: TicketOffice,
        reach: Reach,
    ) -> None:
        self._local = local
        self._registry = registry
        self._rooms = rooms
        self._office = office
        self._reach = reach
        self._dialers: dict[tuple[Contact, str], Dialer] = {}
        self._tasks: dict[tuple[Contact, str], asyncio.Task[None]] = {}
        self._nodes: dict[NodeId, NodeView] | None = None
        self._wanted: list[Contact] = []
        self._changed = asyncio.Event()

    def see(self, view: View) -> None:
        """The state room changed: dial whom it names now."""
        if view.nodes is self._nodes:
            return  # cursors and agents change much more often than nodes
        self._nodes = view.nodes
        own, reach = self._local.identity.node, self._reach
        for dialer in self._dialers.values():
            dialer.spread(first_wait_s(len(view.nodes)))
        wanted = contacts(view, own, reach.issuer, loopback=reach.loopback)
        if view.revoked(own) is not None:
            wanted = []  # nobody lets this key in any more
        if wanted != self._wanted:
            gone = {contact.node for contact in self._wanted} - {contact.node for contact in wanted}
            self._wanted = wanted
            if any(view.revoked(node) is not None for node in gone):
                # who is put out hears of it before its sockets close
                asyncio.get_running_loop().call_later(REVOKED_TOLD_WITHIN_S, self._changed.set)
            else:
                self._changed.set()

    async def run(self) -> None:
        """Dial until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._adjust(tasks)
                await self._changed.wait()
                self._changed.clear()

    def report(self, peer: NodeId) -> DialReport | None:
        """How dialling a peer's pipe stands; None when it is not dialled from here."""
        for (contact, channel), dialer in self._dialers.items():
            if contact.node == peer and channel == PIPE_ROOM:
                return dialer.report
        return None

    def _adjust(self, tasks: asyncio.TaskGroup) -> None:
        wanted = {(contact, PIPE_ROOM) for contact in self._wanted}
        for contact in self._wanted[:ROOM_PEERS_MAX]:
            wanted |= {(contact, STATE_ROOM), (contact, CURSORS_ROOM)}
        for key in [key for key in self._tasks if key not in wanted]:
            self._tasks.pop(key).cancel()
            del self._dialers[key]
        for contact, channel in sorted(wanted - set(self._tasks), key=lambda key: (key[0].node, key[1])):
            dialer = self._dialer(contact, channel)
            dialer.spread(first_wait_s(len(self._nodes or ())))
            self._dialers[contact, channel] = dialer
            self._tasks[contact, channel] = tasks.create_task(dialer.run())

    def _dialer(self, contact: Contact, channel: str) -> Dialer:
        async def headers() -> dict[str, str]:
            return await self._headers(contact, channel)

        async def session(connection: ClientConnection) -> None:
            await self._session(contact, channel, connection)

        clock: Clock = self._local.clock
        url = contact.url.replace("http", "ws", 1) + PATHS[channel]
        return Dialer(url, headers, session, fraction=clock.fraction, message_bytes_max=FRAME_BYTES_MAX)

    async def _headers(self, contact: Contact, channel: str) -> dict[str, str]:
        await self._my_turn(contact.node, channel)
        pin = Pin(mesh=self._local.identity.mesh, jkt=contact.key.jkt, seed=False)
        try:
            opening = await self._office.renew(contact.url, pin, channel, PATHS[channel])
        except Denied as refusal:
            if refusal.words:  # this node was put out while it was away, and hears of it here first
                self._rooms.hear(refusal.words)
            raise
        return opening.headers

    async def _my_turn(self, peer: NodeId, channel: str) -> None:
        """Wait while a socket is up, and a little longer if the peer should be the one to dial."""
        while True:
            await self._registry.free(peer, channel)
            if self._local.identity.node < peer or not self._reach.endpoints:
                return
            await asyncio.sleep(DEFER_S)
            if not self._registry.is_up(peer, channel):
                return

    async def _session(self, contact: Contact, channel: str, connection: ClientConnection) -> None:
        self._registry.opened(contact.node, channel)
        try:
            room = self._rooms.named(channel)
            if room is not None:
                closed = await room.serve(send_of(connection), recv_of(connection), peer=contact.node)
                await connection.close(closed.code if closed.code != 1006 else 1011, closed.reason)
            else:
                socket = DialledSocket(connection)
                link = Link(self._local, contact.node, contact.key.verify, socket, dialled=True)
                await self._registry.run_link(link)
        finally:
            self._registry.closed(contact.node, channel)
