"""``WS /v1/watch``: what is newly accepted for an agent, pushed as it comes and never acknowledged.

Every acceptance puts its ACK into the own outbox in the same transaction, so the feed of the outbox wakes a
watcher exactly when there is something to show; nothing is polled.
"""

import asyncio

import msgspec
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from gateway.api.frames import ItemFrame
from gateway.api.rows import InboxRow, inbox_row
from gateway.endpoints.actors import acting_agent
from gateway.endpoints.bodies import AgentQuery
from gateway.endpoints.desk import LocalDesk
from gateway.endpoints.guard import principal_of
from gateway.endpoints.limits import SEND_WITHIN_S
from gateway.endpoints.reading import query_of
from outbox.chain import Entry, Head
from outbox.envelope import Ack, decode_event, decode_header, decode_payload
from outbox.ids import AgentId
from outbox.kinds import AckStatus, Kind
from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX
from outbox.readership import names
from outbox.timestamps import rfc3339


class WatchRoute:
    """The route; one task pair a socket."""

    def __init__(self, desk: LocalDesk) -> None:
        self._desk = desk

    def routes(self) -> list[WebSocketRoute]:
        """Path of the socket."""
        return [WebSocketRoute("/v1/watch", self.watch)]

    async def watch(self, socket: WebSocket) -> None:
        """Serve one socket: whatever is accepted after it opened."""
        query = query_of(socket, AgentQuery)
        agent = acting_agent(self._desk, principal_of(socket), query.agent)
        start = self._desk.runtime.feed.written
        await socket.accept()
        try:
            async with asyncio.TaskGroup() as owners:
                owners.create_task(_until_gone(socket))
                owners.create_task(self._push(socket, agent, start))
        except* (WebSocketDisconnect, TimeoutError):
            pass  # gone, or takes nothing: it can look at the inbox later

    async def _push(self, socket: WebSocket, agent: AgentId, start: Head) -> None:
        place = start
        while True:
            await self._desk.runtime.feed.beyond(place)
            page = self._desk.reader.read(place, PAGE_ENTRIES_MAX, PAGE_BYTES_MAX)
            for entry in page.entries if page is not None else ():
                row = self._accepted(entry, agent)
                if row is not None:
                    async with asyncio.timeout(SEND_WITHIN_S):
                        await socket.send_text(msgspec.json.encode(ItemFrame(row)).decode())
            place = page.checkpoint.head if page is not None else self._desk.runtime.feed.written

    def _accepted(self, entry: Entry, agent: AgentId) -> InboxRow | None:
        """The row that this entry accepts for the agent; an ACK that is only said again shows nothing."""
        header = decode_header(entry.header)
        if header.kind != Kind.ACK or header.corr_id is None:
            return None
        rows = self._desk.reader.ledger(header.corr_id)
        row = next((row for row in rows if row.to_agent == agent and names(header, row.source)), None)
        if row is None:
            return None
        event = decode_event(entry.body)
        first = event.created_at == rfc3339(row.accepted_at_ms)
        ack = decode_payload(event, Ack)
        if not (first and ack.status is AckStatus.ACCEPTED and not ack.promises):
            return None
        missing = row.blob is not None and self._desk.reader.blob(row.blob) is None
        return inbox_row(row, blob_missing=missing)


async def _until_gone(socket: WebSocket) -> None:
    """A watcher says nothing; its silence is read so that its end is seen."""
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1006))
