"""Who dials whom: one socket a peer and channel, kept up for ever by whoever can reach the other.

The node with the smaller name dials at once, the other one only when nobody has come for a while; so two
nodes that can both dial do not meet twice, and a node that nobody can reach still reaches everybody.

Addresses come from validly signed records only. A loopback address means this machine, so it is dialled only
in a mesh that lives on this machine.
"""

import asyncio
from dataclasses import dataclass

import structlog
from websockets.asyncio.client import ClientConnection

from auth.gateway_proofs import Pin
from auth.keys import PublicKey
from gateway.clock import Clock
from gateway.door import CURSORS_ROOM, PIPE_ROOM, STATE_ROOM, admitted_key
from gateway.errors import Denied
from gateway.links.limits import DEFER_S, DIRECT_PEERS_MAX, REVOKED_TOLD_WITHIN_S, ROOM_PEERS_MAX
from gateway.links.link import Link
from gateway.links.local import Local
from gateway.links.reach import Issuer, Reach, is_local
from gateway.links.registry import Registry
from gateway.links.socket import DialledSocket
from gateway.links.tickets import TicketOffice
from gateway.rooms import Rooms
from gateway.wire.limits import FRAME_BYTES_MAX
from outbox.ids import NodeId
from stateroom.dialer import Dialer, DialReport
from stateroom.limits import BACKOFF_CAP_S, BACKOFF_FIRST_S
from stateroom.sockets import recv_of, send_of
from stateroom.view import NodeView, View

log = structlog.get_logger(__name__)

PATHS = {
    STATE_ROOM: "/ansible/yjs/state",
    CURSORS_ROOM: "/ansible/yjs/cursors",
    PIPE_ROOM: "/ansible/pipe",
}


@dataclass(frozen=True, slots=True)
class Contact:
    """A peer that can be dialled."""

    node: NodeId
    url: str
    key: PublicKey


def contacts(view: View, own: NodeId, issuer: Issuer | None, *, loopback: bool) -> list[Contact]:
    """Peers to dial: seeds first, then by name; the issuer's address is known without the room.

    In a mesh of many only its seeds are dialled, which carry everything; without one that can be dialled the
    first few others are.
    """
    peers = sorted(view.peers(own), key=lambda peer: (peer.role != "seed", peer.node))
    found = [contact for peer in peers if (contact := _contact(peer, loopback=loopback))]
    if len(peers) > DIRECT_PEERS_MAX:
        seeds = {peer.node for peer in peers if peer.role == "seed"}
        found = [contact for contact in found if contact.node in seeds] or found[:ROOM_PEERS_MAX]
    out = issuer is None or view.revoked(issuer.node) is not None
    if issuer is not None and not out and all(contact.node != issuer.node for contact in found):
        found.insert(0, Contact(issuer.node, issuer.url, PublicKey.from_text(issuer.key)))
    return found


def first_wait_s(nodes: int) -> float:
    """Below what the first wait after a lost session is drawn in a mesh of so many nodes.

    Where only seeds are dialled, all others dial the same ones: whatever their number, about as many a second
    come back to a seed that was away for a moment as from a mesh in which everybody dials everybody.
    """
    return min(BACKOFF_CAP_S, BACKOFF_FIRST_S * max(1.0, nodes / DIRECT_PEERS_MAX))


def _contact(peer: NodeView, *, loopback: bool) -> Contact | None:
    key = admitted_key(peer)
    url = next((url for url in peer.endpoints if loopback or not is_local(url)), None)
    return Contact(peer.node, url, key) if key is not None and url is not None else None


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
