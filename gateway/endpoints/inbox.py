"""``GET /v1/inbox``: a look at an agent's inbox. Looking acknowledges nothing."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.api.rows import InboxAnswer, InboxRow, inbox_row
from gateway.endpoints.actors import acting_agent
from gateway.endpoints.answers import json
from gateway.endpoints.bodies import InboxQuery
from gateway.endpoints.desk import LocalDesk
from gateway.endpoints.guard import principal_of
from gateway.endpoints.limits import ROWS_BYTES_MAX, ROWS_MAX
from gateway.endpoints.reading import query_of
from outbox.ids import event_id
from outbox.records import Received


class InboxRoute:
    """The route."""

    def __init__(self, desk: LocalDesk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        """Path and method."""
        return [Route("/v1/inbox", self.inbox, methods=["GET"])]

    async def inbox(self, request: Request) -> Response:
        """The newest rows, or the first ones after an event; unfinished ones only, unless ``all``."""
        query = query_of(request, InboxQuery)
        agent = acting_agent(self._desk, principal_of(request), query.agent)
        after = event_id(query.after) if query.after is not None else None
        rows = self._desk.reader.inbox(agent, done=query.all, limit=ROWS_MAX)
        if after is None:
            chosen = _fitting(rows[-query.limit :][::-1])[::-1]
        else:
            chosen = _fitting(_following(rows, after)[: query.limit])
            rows = _following(rows, after)
        return json(InboxAnswer([self._row(row) for row in chosen], more=len(chosen) < len(rows)))

    def _row(self, row: Received) -> InboxRow:
        missing = row.blob is not None and self._desk.reader.blob(row.blob) is None
        return inbox_row(row, blob_missing=missing)


def _following(rows: list[Received], after: str) -> list[Received]:
    """The rows after an event; all of them when it is not among them (it may be done already)."""
    for index, row in enumerate(rows):
        if row.event_id == after:
            return rows[index + 1 :]
    return rows


def _fitting(rows: list[Received]) -> list[Received]:
    """As many of the first rows as fit into one answer, at least one."""
    size = 0
    for index, row in enumerate(rows):
        size += len(row.body)
        if size > ROWS_BYTES_MAX and index:
            return rows[:index]
    return rows
