"""What a collector has open: the home whose node it is, the state room, and a link to each gateway it reads.

Seeds come first, as for every node (``gateway.links.peering``). A link is kept until it is lost.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from auth.gateway_proofs import Pin
from auth.joiner import Joiner
from auth.keyring import Keyring
from gateway.clock import Clock
from gateway.collecting.visitor import Visitor
from gateway.door import PIPE_ROOM, STATE_ROOM
from gateway.errors import TimedOut, Unreachable
from gateway.home import Home, read_record
from gateway.limits import JOIN_WITHIN_S
from gateway.links.contacts import Contact, contacts
from gateway.links.peering import PATHS
from gateway.links.reach import Issuer, is_local
from gateway.links.socket import DialledSocket
from gateway.links.tickets import Opening, TicketOffice
from gateway.links.visiting import replicate, visit
from gateway.rooms import Rooms
from outbox.forks import ForkProof
from outbox.ids import Epoch, NodeId
from outbox.records import Identity
from spark.limits import LOOK_AROUND_S
from stateroom.outflow import Recv
from stateroom.sockets import recv_of
from stateroom.view import View

_SYNC_STEP2 = b"\x00\x01"
"""How the frame begins that brings what we lacked of a document (``stateroom.exchange``)."""


@dataclass(slots=True)
class _Session:
    visitor: Visitor
    stack: AsyncExitStack
    looked_ms: int
    """When the state room was brought up to date last, on the monotonic clock."""


class Sessions:
    """Links of one collector; ``close`` them. All on one event loop."""

    def __init__(self, home: Home, who: Identity, clock: Clock, tasks: asyncio.TaskGroup) -> None:
        """Raises HomeError, StorageFailed and the keyring's errors."""
        key = Keyring(home.keys).kept_node_key()
        self.who = who
        self._clock, self._tasks = clock, tasks
        self._issuer = _issuer(home)
        self._rooms = Rooms(home.room, who, key, clock)
        self._office = TicketOffice(Joiner(who.node, key), clock, allow_plain=True)
        self._sessions: dict[Contact, _Session] = {}
        self._running: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Read the state room of the last time, and keep it open."""
        await self._rooms.load()
        self._running = self._tasks.create_task(self._rooms.state.run())

    @property
    def view(self) -> View:
        """The mesh, as it was known when a link was opened last."""
        return self._rooms.view()

    def proofs(self) -> list[ForkProof]:
        """Which nodes have written two histories, as it was known then."""
        return self._rooms.fork_proofs()

    def contacts(self) -> list[Contact]:
        """Whom to dial, in order."""
        loopback = self._issuer is None or is_local(self._issuer.url)
        return contacts(self.view, self.who.node, self._issuer, loopback=loopback)

    async def visitor(self, contact: Contact) -> Visitor:
        """The link to a gateway, opened if it is not; the state room is a minute old at most.

        Raises Unreachable, TimedOut, Denied, WrongGateway, and PeerError branches while it greets.
        """
        known = self._sessions.get(contact)
        if known is not None and known.visitor.fault is None:
            if self._clock.mono_ms() - known.looked_ms > LOOK_AROUND_S * 1000:
                known.looked_ms = self._clock.mono_ms()
                await self.look_around(contact)
            return known.visitor
        await self.leave(contact)
        await self.look_around(contact)
        async with AsyncExitStack() as stack:
            socket = await stack.enter_async_context(
                visit(contact.url, await self._opening(contact, PIPE_ROOM), PIPE_ROOM)
            )
            visitor = Visitor(self.who, contact.node, DialledSocket(socket), self._clock)
            await visitor.greet()
            stack.callback(self._tasks.create_task(visitor.run()).cancel)
            self._sessions[contact] = _Session(visitor, stack.pop_all(), self._clock.mono_ms())
        return visitor

    async def look_around(self, contact: Contact) -> None:
        """Bring the state room up to what a gateway knows: who is there, by which keys. Raises as above."""
        filled = asyncio.Event()
        opening = await self._opening(contact, STATE_ROOM)
        try:
            async with (
                asyncio.timeout(JOIN_WITHIN_S),
                visit(contact.url, opening, STATE_ROOM) as socket,
            ):
                await replicate(self._rooms, socket, contact.node, filled, _marking(recv_of(socket), filled))
        except TimeoutError:
            raise TimedOut(f"{contact.node} did not bring the state room in time") from None
        if not filled.is_set():
            raise Unreachable(f"{contact.node} closed the state room before it was complete")

    def looked(self, contact: Contact) -> Mapping[NodeId, Epoch]:
        """Of which outboxes earlier epochs were asked for over the link to a gateway, and when."""
        session = self._sessions.get(contact)
        return session.visitor.looked if session is not None else {}

    async def leave(self, contact: Contact) -> None:
        """Close the link to a gateway, if there is one."""
        session = self._sessions.pop(contact, None)
        if session is not None:
            await session.stack.aclose()

    async def close(self) -> None:
        """Close all."""
        for contact in list(self._sessions):
            await self.leave(contact)
        await self._office.close()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
        self._rooms.close()

    async def _opening(self, contact: Contact, channel: str) -> Opening:
        pin = Pin(mesh=self.who.mesh, jkt=contact.key.jkt, seed=False)
        return await self._office.renew(contact.url, pin, channel, PATHS[channel])


def _marking(recv: Recv, filled: asyncio.Event) -> Recv:
    """The same, and says so once the room has handled what it lacked."""
    came = False

    async def marked() -> bytes | None:
        nonlocal came
        if came:
            filled.set()
        frame = await recv()
        came = came or (frame or b"").startswith(_SYNC_STEP2)
        return frame

    return marked


def _issuer(home: Home) -> Issuer | None:
    return read_record(home.issuer, Issuer) if home.issuer.exists() else None
