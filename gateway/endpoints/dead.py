"""HTTP routes for dead letters: what was given up, and what an operator does about it."""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.api.operator import DeadPruned
from gateway.api.rows import delivery_row
from gateway.endpoints.actors import need_admin, sees
from gateway.endpoints.answers import json, sent_answer
from gateway.endpoints.bodies import DeadQuery, NoQuery, PruneBody, RedriveBody
from gateway.endpoints.desk import LocalDesk
from gateway.endpoints.guard import principal_of
from gateway.endpoints.limits import DEAD_ROWS
from gateway.endpoints.reading import body_of, query_of
from gateway.engine.deadletters import Dismiss, Redrive
from gateway.engine.effects import Dismissed, Sent
from gateway.engine.redrive import NEWEST
from outbox.errors import NotFound
from outbox.ids import EventId, event_id
from outbox.reader import JournalReader
from outbox.records import Delivery, DeliveryState


class DeadRoutes:
    """An agent sees what it sent; sending again and pruning is the operator's."""

    def __init__(self, desk: LocalDesk) -> None:
        self._desk = desk
        self._runtime = desk.runtime

    def routes(self) -> list[Route]:
        """Paths and methods."""
        return [
            Route("/v1/dead", self.dead, methods=["GET"]),
            Route("/v1/dead/prune", self.prune, methods=["POST"]),
            Route("/v1/dead/{event}/redrive", self.redrive, methods=["POST"]),
        ]

    async def dead(self, request: Request) -> Response:
        """Dead letters, newest first."""
        query = query_of(request, DeadQuery)
        principal = principal_of(request)
        found = await self._desk.lookups.ask(partial(_listed, query=query))
        rows = [row for row in found if sees(principal, row.from_agent)]
        return json([delivery_row(row, row.state) for row in rows[: query.limit]])

    async def redrive(self, request: Request) -> Response:
        """Send one again, as a new event: 202. Asked twice, the same new event is the answer."""
        query_of(request, NoQuery)
        need_admin(principal_of(request))
        body = await body_of(request, RedriveBody)
        sent = await self._runtime.ask(
            Redrive(
                req=self._runtime.req(),
                event_id=event_id(request.path_params["event"]),
                expires_in_ms=body.expires_in_ms,
            )
        )
        assert isinstance(sent, Sent)
        return json(sent_answer(sent), 202)

    async def prune(self, request: Request) -> Response:
        """Take some from the list; traces of them stay until retention passes them."""
        query_of(request, NoQuery)
        need_admin(principal_of(request))
        body = await body_of(request, PruneBody)
        dismissed = await self._runtime.ask(
            Dismiss(
                req=self._runtime.req(),
                event_ids=tuple(event_id(event) for event in body.event_ids),
                before_ms=self._runtime.wall_ms() - body.older_than_ms,
            )
        )
        assert isinstance(dismissed, Dismissed)
        return json(DeadPruned(dismissed.count))


def _listed(reader: JournalReader, query: DeadQuery) -> list[Delivery]:
    limit = max(query.limit, DEAD_ROWS)
    if query.all:
        return reader.deliveries((DeliveryState.DEAD_LETTER,), limit)
    before = NEWEST if query.before is None else _place(reader, event_id(query.before))
    return reader.dead_letters(before, limit)


def _place(reader: JournalReader, event: EventId) -> tuple[int, EventId]:
    rows = reader.obligations(event)
    if not rows:
        raise NotFound(f"{event} is no event of this node", hint="leave `before` out to begin anew")
    return rows[0].created_at_ms, event
