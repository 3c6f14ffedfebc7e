"""HTTP routes that show the journal: trace, deliveries, incidents, the outbox itself.

Incidents that tell of the past may be closed, too.
"""

import asyncio
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from auth.scopes import Admin
from gateway.api.carried import carried, told
from gateway.api.delivery_state import WAITING
from gateway.api.operator import IncidentsClosedAnswer
from gateway.api.rows import (
    OutboxAnswer,
    delivery_row,
    incident_row,
    outbox_row,
    readable_event,
)
from gateway.api.trace import EventTrace, Known, assemble
from gateway.endpoints.actors import need_admin, sees
from gateway.endpoints.answers import json
from gateway.endpoints.bodies import CloseIncidentsBody, DeliveriesQuery, IncidentsQuery, NoQuery, OutboxQuery
from gateway.endpoints.desk import LocalDesk, surroundings_of
from gateway.endpoints.errors import BadRequest
from gateway.endpoints.guard import principal_of
from gateway.endpoints.limits import COPIED_ABOUT_MAX, COPY_CLOCKS_APART_MS, ROWS_MAX
from gateway.endpoints.reading import body_of, query_of
from gateway.endpoints.surroundings import Surroundings
from gateway.engine.closing import CloseIncidents
from gateway.engine.effects import IncidentsClosed
from gateway.engine.pastincidents import PAST
from gateway.home import Home
from outbox.chain import Head
from outbox.envelope import Event, decode_event
from outbox.errors import NotFound
from outbox.ids import EventId, NodeId, Seq, event_id, event_id_ms
from outbox.limits import PAGE_BYTES_MAX
from outbox.reader import JournalReader
from outbox.records import DeliveryState

_STORED = tuple(DeliveryState)
_UNANSWERED = (DeliveryState.EMITTED, DeliveryState.RETRY_PENDING)


class JournalRoutes:
    """An agent sees what it sent and what came for it; the operator sees all."""

    def __init__(self, desk: LocalDesk) -> None:
        self._desk = desk
        self._searching = asyncio.Lock()
        """One search of the copies at a time."""

    def routes(self) -> list[Route]:
        """Paths and methods."""
        return [
            Route("/v1/trace/{event}", self.trace, methods=["GET"]),
            Route("/v1/deliveries", self.deliveries, methods=["GET"]),
            Route("/v1/incidents", self.incidents, methods=["GET"]),
            Route("/v1/incidents/close", self.close_incidents, methods=["POST"]),
            Route("/v1/outbox", self.outbox, methods=["GET"]),
        ]

    async def trace(self, request: Request) -> Response:
        """All that this node knows about one event. 404 when it knows nothing."""
        query_of(request, NoQuery)
        event, principal = event_id(request.path_params["event"]), principal_of(request)
        around = surroundings_of(self._desk)
        found = await self._desk.lookups.ask(partial(_traced, event=event, around=around))
        if found is None and isinstance(principal, Admin):
            async with self._searching:
                found = await asyncio.to_thread(_carried, self._desk.home, self._desk.identity.node, event)
        if found is None or not sees(principal, found.from_agent, found.to_agent):
            raise NotFound(
                f"this node knows nothing of {event}", hint="ask the node that sent or received it"
            )
        return json(found)

    async def deliveries(self, request: Request) -> Response:
        """The newest deliveries, of all states or of one as it is shown."""
        query = query_of(request, DeliveriesQuery)
        if query.state is not None and query.state not in (*_STORED, *WAITING):
            raise BadRequest(f"state is one of {', '.join((*_STORED, *WAITING))}")
        stored = _stored(query.state)
        found = await self._desk.lookups.ask(lambda reader: reader.deliveries(stored, ROWS_MAX))
        around, principal = surroundings_of(self._desk), principal_of(request)
        rows = [delivery_row(row, around.state_of(row)) for row in found if sees(principal, row.from_agent)]
        return json([row for row in rows if query.state in {None, row.state}][: query.limit])

    async def incidents(self, request: Request) -> Response:
        """Open incidents, or with ``all`` closed ones too."""
        query = query_of(request, IncidentsQuery)
        need_admin(principal_of(request))
        open_only = not query.all
        rows = await self._desk.lookups.ask(lambda read: read.newest_incidents(ROWS_MAX, open_only=open_only))
        return json([incident_row(row) for row in rows])

    async def close_incidents(self, request: Request) -> Response:
        """Close some that tell of the past; the others end with their reason."""
        query_of(request, NoQuery)
        need_admin(principal_of(request))
        body, runtime = await body_of(request, CloseIncidentsBody), self._desk.runtime
        if not body.about and body.kind is None and body.older_than_ms is None:
            raise BadRequest("say which: about, kind or olderThanMs")
        if body.kind is not None and body.kind not in PAST:
            raise BadRequest(f"kind is one of {', '.join(sorted(PAST))}", hint="others end with their reason")
        closed = await runtime.ask(
            CloseIncidents(
                req=runtime.req(),
                subjects=body.about,
                kind=body.kind,
                before_ms=None if body.older_than_ms is None else runtime.wall_ms() - body.older_than_ms,
            )
        )
        assert isinstance(closed, IncidentsClosed)
        return json(IncidentsClosedAnswer(closed.count))

    async def outbox(self, request: Request) -> Response:
        """Entries of the own outbox after a position. Raises the cursor errors of ``JournalReader.read``."""
        query = query_of(request, OutboxQuery)
        need_admin(principal_of(request))
        return json(await self._desk.lookups.ask(partial(_entries, after=query.after, limit=query.limit)))


def _stored(shown: str | None) -> tuple[DeliveryState, ...]:
    """The stored states of rows that may be shown as this one, or as any."""
    if shown is None:
        return _STORED
    return _UNANSWERED if shown in WAITING else (DeliveryState(shown),)


def _entries(reader: JournalReader, after: int, limit: int) -> OutboxAnswer:
    epoch, head = reader.identity().epoch, reader.head()
    page = reader.read(Head(epoch, Seq(after), b""), limit, PAGE_BYTES_MAX)
    entries = page.entries[:limit] if page is not None else ()
    last = entries[-1].seq if entries else Seq(after)
    return OutboxAnswer([outbox_row(entry) for entry in entries], last, head.seq)


def _traced(reader: JournalReader, event: EventId, around: Surroundings) -> EventTrace | None:
    own = tuple((entry.seq, decode_event(entry.body)) for entry in reader.events_about(event))
    found: Event | None = next((entry for _, entry in own if entry.event_id == event), None)
    deliveries, rows = reader.obligations(event), reader.ledger(event)
    source = around.here if found is not None else (rows[0].source if rows else None)
    rows = [row for row in rows if row.source == source]  # what others sent under its id is another story
    if found is None and rows:
        found = readable_event(rows[0].body)
    if found is None:
        return None
    known = Known(
        identity=reader.identity(),
        event=found,
        own=own,
        deliveries=tuple((row, around.state_of(row)) for row in deliveries),
        received=tuple(rows),
        blob_missing=found.payload_ref is not None and reader.blob(found.payload_ref.sha256) is None,
    )
    return assemble(known)


def _carried(home: Home, here: NodeId, event: EventId) -> EventTrace | None:
    """From copies, if there are any: on a thread and a connection of its own, as it may take seconds."""
    reader = JournalReader.open(home.journal)
    try:
        entries = reader.copied_about(event, event_id_ms(event) - COPY_CLOCKS_APART_MS, COPIED_ABOUT_MAX)
    finally:
        reader.close()
    return carried(here, event, filter(None, (told(*each) for each in entries)))
