"""``GET /v1/inbox``: a look at an agent's inbox. Looking acknowledges nothing."""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.api.rows import InboxAnswer, InboxRow, inbox_row
from gateway.endpoints.actors import acting_agent
from gateway.endpoints.answers import json
from gateway.endpoints.bodies import InboxQuery
from gateway.endpoints.desk import LocalDesk
from gateway.endpoints.guard import principal_of
from gateway.endpoints.limits import ROWS_BYTES_MAX
from gateway.endpoints.reading import query_of
from outbox.errors import NotFound
from outbox.ids import AgentId, EventId, event_id
from outbox.reader import JournalReader
from outbox.records import Received


class InboxRoute:
    """The route."""

    def __init__(self, desk: LocalDesk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        """Path and method."""
        return [Route("/v1/inbox", self.inbox, methods=["GET"])]

    async def inbox(self, request: Request) -> Response:
        """The newest rows, or the first ones after an event; unfinished ones only, unless ``all``.

        404 after an event that never came for the agent, or was forgotten: whoever asks would take the rows
        from somewhere else for those that follow.
        """
        query = query_of(request, InboxQuery)
        agent = acting_agent(self._desk, principal_of(request), query.agent)
        return json(await self._desk.lookups.ask(partial(_look, agent=agent, query=query)))


def _look(reader: JournalReader, agent: AgentId, query: InboxQuery) -> InboxAnswer:
    if query.after is None:
        rows = reader.inbox(agent, done=query.all, limit=query.limit + 1)
        chosen = _fitting(rows[-query.limit :][::-1])[::-1]
    else:
        rows = _after(reader, agent, event_id(query.after), done=query.all, limit=query.limit + 1)
        chosen = _fitting(rows[: query.limit])
    return InboxAnswer([_row(reader, row) for row in chosen], more=len(chosen) < len(rows))


def _after(
    reader: JournalReader, agent: AgentId, event: EventId, *, done: bool, limit: int
) -> list[Received]:
    rows = reader.inbox_after(agent, event, done=done, limit=limit)
    if rows is None:
        raise NotFound(f"{event} is not in the inbox of {agent}", hint="leave `after` out to begin anew")
    return rows


def _row(reader: JournalReader, row: Received) -> InboxRow:
    return inbox_row(row, blob_missing=row.blob is not None and reader.blob(row.blob) is None)


def _fitting(rows: list[Received]) -> list[Received]:
    """As many of the first rows as fit into one answer, at least one."""
    size = 0
    for index, row in enumerate(rows):
        size += len(row.body)
        if size > ROWS_BYTES_MAX and index:
            return rows[:index]
    return rows
