"""Dialling in a simulated mesh: the gateway's own peering and dialler, over simulated connections.

Tickets are not simulated: who dials is who it says, and the listener looks it up in the state room.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

from websockets.asyncio.client import ClientConnection

from auth.gateway_proofs import Pin
from auth.keys import PublicKey
from gateway.harness.sim.network import Network
from gateway.harness.sim.signing import Keys
from gateway.harness.sim.wire import Party, WireEnd
from gateway.links.contacts import Contact
from gateway.links.local import Local
from gateway.links.peering import Peering
from gateway.links.reach import Reach
from gateway.links.registry import Registry
from gateway.links.tickets import Opening, TicketOffice
from gateway.rooms import Rooms
from outbox.ids import node_id
from stateroom.dialer import Dialer

FORBIDDEN = 4403
"""Closes a connection of who is not admitted; the reason are the words about a key that was revoked."""


class SimDialer(Dialer):
    """Dials the simulated network."""

    dial: Callable[[], Awaitable[WireEnd]]

    @asynccontextmanager
    async def _connect(self, headers: Mapping[str, str]) -> AsyncIterator[ClientConnection]:  # noqa: ARG002 - no ticket
        end = await self.dial()
        try:
            yield cast("ClientConnection", end)
        finally:
            await end.close()


class _NoTickets(TicketOffice):
    def __init__(self) -> None:
        """No HTTP client."""

    async def renew(self, url: str, pin: Pin, room: str, path: str) -> Opening:  # noqa: ARG002 - as a TicketOffice
        """Nothing to show."""
        return Opening(node_id(url.removeprefix("http://")), {})


class SimPeering(Peering):
    """Keeps a simulated gateway's outgoing connections."""

    def __init__(
        self,
        local: Local,
        registry: Registry,
        rooms: Rooms,
        reach: Reach,
        *,
        network: Network,
        party: Party,
        keys: Keys,
    ) -> None:
        super().__init__(local, registry, rooms, _NoTickets(), reach)
        self._network = network
        self._party = party
        self._keys = keys

    def _dialer(self, contact: Contact, channel: str) -> Dialer:
        async def headers() -> Mapping[str, str]:
            return await self._headers(contact, channel)

        async def session(connection: ClientConnection) -> None:
            await self._session(contact, channel, connection)

        dialer = SimDialer(contact.url, headers, session, fraction=self._local.clock.fraction)
        dialer.dial = lambda: self._network.dial(self._party, contact.node, channel)
        return dialer

    async def _session(self, contact: Contact, channel: str, connection: ClientConnection) -> None:
        key = cast("PublicKey", self._keys.key(contact.node))
        try:
            await super()._session(replace(contact, key=key), channel, connection)
        finally:
            words = cast("WireEnd", connection).refused(FORBIDDEN)
            if words:  # as with a refused ticket
                self._rooms.hear(words.split())
