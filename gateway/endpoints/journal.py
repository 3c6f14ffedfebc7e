"""HTTP routes that show the journal: trace, deliveries, incidents, the outbox itself.

Incidents that tell of the past may be closed, too.
"""

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from auth.scopes import Admin
from gateway.api.carried import carried, told
from gateway.api.delivery_state import (
    WAITING_FOR_LINK,
    WAITING_FOR_MAINTENANCE,
    WAITING_FOR_OWNER,
    shown_state,
)
from gateway.api.mesh import LinkState
from gateway.api.operator import IncidentsClosedAnswer
from gateway.api.rows import (
    DeliveryRow,
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
from gateway.endpoints.desk import LocalDesk
from gateway.endpoints.errors import BadRequest
from gateway.endpoints.guard import principal_of
from gateway.endpoints.limits import COPIED_ABOUT_MAX, COPY_CLOCKS_APART_MS, ROWS_MAX
from gateway.endpoints.mesh import announced_by
from gateway.endpoints.reading import body_of, query_of
from gateway.engine.closing import CloseIncidents
from gateway.engine.effects import IncidentsClosed
from gateway.engine.maintenance import is_away
from gateway.engine.pastincidents import PAST
from gateway.home import Home
from outbox.chain import Head
from outbox.envelope import Event, decode_event
from outbox.errors import NotFound
from outbox.ids import EventId, NodeId, Seq, event_id, event_id_ms
from outbox.limits import PAGE_BYTES_MAX
from outbox.reader import JournalReader
from outbox.records import Delivery, DeliveryState

_STORED = tuple(DeliveryState)
_WAITING = (WAITING_FOR_LINK, WAITING_FOR_OWNER, WAITING_FOR_MAINTENANCE)


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
        found = self._trace(event)
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
        if query.state is not None and query.state not in (*_STORED, *_WAITING):
            raise BadRequest(f"state is one of {', '.join((*_STORED, *_WAITING))}")
        stored = (query.state,) if query.state in _STORED else _STORED
        rows = [row for row in self._rows(request, stored) if query.state in {None, row.state}]
        return json(rows[: query.limit])

    async def incidents(self, request: Request) -> Response:
        """Open incidents, or with ``all`` closed ones too."""
        query = query_of(request, IncidentsQuery)
        need_admin(principal_of(request))
        rows = self._desk.reader.newest_incidents(ROWS_MAX, open_only=not query.all)
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
        epoch, head = self._desk.identity.epoch, self._desk.reader.head()
        page = self._desk.reader.read(Head(epoch, Seq(query.after), b""), query.limit, PAGE_BYTES_MAX)
        entries = page.entries[: query.limit] if page is not None else ()
        after = entries[-1].seq if entries else Seq(query.after)
        return json(OutboxAnswer([outbox_row(entry) for entry in entries], after, head.seq))

    def _rows(self, request: Request, states: tuple[str, ...]) -> list[DeliveryRow]:
        principal = principal_of(request)
        found = self._desk.reader.deliveries(states, ROWS_MAX)
        return [delivery_row(row, self._shown_state(row)) for row in found if sees(principal, row.from_agent)]

    def _shown_state(self, row: Delivery) -> str:
        up = {link.node for link in self._desk.links() if link.state is LinkState.UP}
        node = row.node
        return shown_state(
            row,
            local=node == self._desk.identity.node,
            online=node is not None and self._desk.runtime.view.online(node),
            linked=node in up,
            away=is_away(announced_by(self._desk, node), self._desk.clock.wall_ms()),
        )

    def _trace(self, event: EventId) -> EventTrace | None:
        reader = self._desk.reader
        own = tuple((entry.seq, decode_event(entry.body)) for entry in reader.events_about(event))
        found: Event | None = next((entry for _, entry in own if entry.event_id == event), None)
        deliveries, rows = reader.obligations(event), reader.ledger(event)
        source = self._desk.identity.node if found is not None else (rows[0].source if rows else None)
        rows = [row for row in rows if row.source == source]  # what others sent under its id is another story
        if found is None and rows:
            found = readable_event(rows[0].body)
        if found is None:
            return None
        known = Known(
            identity=self._desk.identity,
            event=found,
            own=own,
            deliveries=tuple((row, self._shown_state(row)) for row in deliveries),
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
