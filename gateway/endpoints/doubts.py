"""HTTP route of the operator about what this node has forgotten."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.api.operator import DoubtsEnded
from gateway.endpoints.actors import need_admin
from gateway.endpoints.answers import json
from gateway.endpoints.bodies import NoQuery
from gateway.endpoints.desk import LocalDesk
from gateway.endpoints.guard import principal_of
from gateway.endpoints.reading import query_of
from gateway.engine import doubts


class DoubtRoutes:
    """Needs the admin."""

    def __init__(self, desk: LocalDesk) -> None:
        self._runtime = desk.runtime

    def routes(self) -> list[Route]:
        """Paths and methods."""
        return [Route("/v1/doubts/end", self.end, methods=["POST"])]

    async def end(self, request: Request) -> Response:
        """Wait for nobody any longer: what is open is handed over, and reported as perhaps done before."""
        query_of(request, NoQuery)
        need_admin(principal_of(request))
        ended = await self._runtime.ask(doubts.EndDoubts(self._runtime.req()))
        assert isinstance(ended, doubts.DoubtsEnded)
        return json(DoubtsEnded(ended.nodes))
