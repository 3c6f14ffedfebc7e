"""The gateway as an operator's program sees it."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from gateway.api.answers import SentAnswer, ToldAnswer
from gateway.api.blobs import BlobsAnswer
from gateway.api.mesh import AgentRow, NodeRow, StatusAnswer
from gateway.api.operator import (
    AgentAdded,
    AgentSet,
    DeadPruned,
    DoubtsEnded,
    IncidentsClosedAnswer,
    InviteAnswer,
    InviteRow,
    PrunedAnswer,
    RevocationAnswer,
)
from gateway.api.rows import DeliveryRow, IncidentRow, OutboxAnswer
from gateway.api.trace import EventTrace
from gateway.client.agent import AgentClient
from gateway.client.blobs import Blobs
from gateway.client.wire import Wire
from gateway.clock import Clock
from gateway.home import Home, read_text
from outbox.ids import AgentId, agent_id


class GatewayClient:
    """One gateway. Every call raises Denied (with the gateway's code), Unreachable or TimedOut.

    ``socket`` is the path of the Unix socket, where no token means the operator; ``url`` is ``http://127.0.0.1:…``.
    """

    def __init__(
        self,
        *,
        socket: Path | None = None,
        url: str | None = None,
        token: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._wire = Wire(socket=socket, url=url, token=token)
        self._clock = clock or Clock()
        self.blobs = Blobs(self._wire, self._clock)
        self._agents: dict[AgentId, AgentClient] = {}

    @classmethod
    def of_home(cls, home: Home, agent: AgentId | None = None) -> Self:
        """The gateway of a home on this machine: as its operator, or as one agent by its token file.

        Raises HomeError when there is no such home, or the agent's token cannot be read: a gateway that does
        not run is waited for, one that never can is not.
        """
        home.need_root()
        if agent is None:
            return cls(socket=home.socket)
        return cls(socket=home.socket, token=read_text(home.token(agent)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for agent in self._agents.values():
            await agent.aclose()
        await self._wire.__aexit__(kind, error, trace)

    def agent(self, name: str) -> AgentClient:
        """Speak as an agent of this node. Raises InvalidId."""
        known = agent_id(name)
        if known not in self._agents:
            self._agents[known] = AgentClient(self._wire, known, self._clock)
        return self._agents[known]

    async def list_blobs(self) -> BlobsAnswer:
        """What is too large for a message: what is here, what is awaited."""
        return await self._wire.get("/v1/blobs", BlobsAnswer, {})

    async def status(self) -> StatusAnswer:
        """The node at a glance."""
        return await self._wire.get("/v1/status", StatusAnswer, {})

    async def nodes(self) -> list[NodeRow]:
        """The nodes of the mesh."""
        return await self._wire.get("/v1/nodes", list[NodeRow], {})

    async def agents(self) -> list[AgentRow]:
        """The agents of the mesh."""
        return await self._wire.get("/v1/agents", list[AgentRow], {})

    async def add_agent(
        self,
        name: str,
        *,
        fallback: Sequence[str] = (),
        grace_ms: int | None = None,
        groups: Sequence[str] = (),
        fallback_of: str | None = None,
    ) -> AgentAdded:
        """Name an agent that lives here; its token is in the file that is returned.

        ``fallback`` nodes may answer for it once this one was away for ``grace_ms``. With ``fallback_of`` it
        lives on that node, and this one stands in for it.
        """
        body: dict[str, object] = {"name": name, "fallback": list(fallback), "groups": list(groups)}
        body |= {"graceMs": grace_ms, "fallbackOf": fallback_of}
        return await self._wire.post("/v1/agents", AgentAdded, body)

    async def set_agent(
        self,
        name: str,
        *,
        fallback: Sequence[str] | None = None,
        grace_ms: int | None = None,
        groups: Sequence[str] | None = None,
    ) -> AgentSet:
        """Change what an agent's record says; None leaves it as it is."""
        body = {"fallback": fallback, "graceMs": grace_ms, "groups": groups}
        return await self._wire.patch(f"/v1/agents/{quote(name, safe='')}", AgentSet, body)

    async def remove_agent(self, name: str) -> None:
        """Take it away; its unfinished turns fail."""
        await self._wire.delete(f"/v1/agents/{quote(name, safe='')}")

    async def invite(
        self,
        node: str | None = None,
        *,
        ttl_s: int | None = None,
        key_thumbprint: str | None = None,
        reads_all: bool = False,
    ) -> InviteAnswer:
        """Make a single-use invite, with ``reads_all`` for a mirror or a collector; its join code is in this
        answer only."""
        body = {"node": node, "ttlSeconds": ttl_s, "keyThumbprint": key_thumbprint, "readsAll": reads_all}
        return await self._wire.post("/v1/invites", InviteAnswer, body)

    async def invites(self) -> list[InviteRow]:
        """All invites, newest first."""
        return await self._wire.get("/v1/invites", list[InviteRow], {})

    async def revoke_invite(self, invite_id: str) -> None:
        """Take an invite back."""
        await self._wire.delete(f"/v1/invites/{quote(invite_id, safe='')}")

    async def revoke_node(self, node: str, *, ban: bool = False, reason: str = "") -> RevocationAnswer:
        """Put a node out of the mesh, its key for ever; with ``ban`` its name may not come back either."""
        body: dict[str, object] = {"ban": ban, "reason": reason}
        return await self._wire.post(f"/v1/nodes/{quote(node, safe='')}/revoke", RevocationAnswer, body)

    async def trace(self, event: str) -> EventTrace:
        """What this node knows about one event."""
        return await self._wire.get(f"/v1/trace/{quote(event, safe='')}", EventTrace, {})

    async def deliveries(self, *, state: str | None = None, limit: int | None = None) -> list[DeliveryRow]:
        """The newest deliveries."""
        return await self._wire.get("/v1/deliveries", list[DeliveryRow], {"state": state, "limit": limit})

    async def dead(
        self, *, limit: int | None = None, before: str | None = None, everything: bool = False
    ) -> list[DeliveryRow]:
        """The newest dead letters, or those older than ``before``; with ``everything`` settled ones too."""
        query = {"limit": limit, "before": before, "all": everything}
        return await self._wire.get("/v1/dead", list[DeliveryRow], query)

    async def redrive(self, event: str, *, expires_in_ms: int | None = None) -> SentAnswer:
        """Send a dead letter again as a new event."""
        body = {"expiresInMs": expires_in_ms}
        return await self._wire.post(f"/v1/dead/{quote(event, safe='')}/redrive", SentAnswer, body)

    async def prune_dead(self, *events: str, older_than_ms: int = 0) -> int:
        """Take dead letters from the list: these, or all that were given up so long ago; returns how many."""
        body = {"eventIds": list(events), "olderThanMs": older_than_ms}
        return (await self._wire.post("/v1/dead/prune", DeadPruned, body)).count

    async def incidents(self, *, closed: bool = False) -> list[IncidentRow]:
        """Open incidents, or with ``closed`` all of them."""
        return await self._wire.get("/v1/incidents", list[IncidentRow], {"all": closed})

    async def close_incidents(
        self, *about: str, kind: str | None = None, older_than_ms: int | None = None
    ) -> int:
        """Close incidents that tell of the past: about these, of a kind, or so old; returns how many."""
        body = {"about": list(about), "kind": kind, "olderThanMs": older_than_ms}
        return (await self._wire.post("/v1/incidents/close", IncidentsClosedAnswer, body)).count

    async def announce_maintenance(
        self, *, until: str | None = None, reason: str = "", over: bool = False
    ) -> ToldAnswer:
        """Tell every node that this one will be away, until a time (RFC 3339) or until it is ``over``."""
        body = {"until": until, "reason": reason, "over": over}
        return await self._wire.post("/v1/maintenance", ToldAnswer, body)

    async def prune_outbox(self, *, force: bool = False) -> PrunedAnswer:
        """Forget what may go; with ``force`` also what other nodes have not read."""
        return await self._wire.post("/v1/outbox/prune", PrunedAnswer, {"force": force})

    async def outbox(self, *, after: int = 0, limit: int | None = None) -> OutboxAnswer:
        """Entries of the node's outbox after a position."""
        return await self._wire.get("/v1/outbox", OutboxAnswer, {"after": after, "limit": limit})

    async def end_doubts(self) -> DoubtsEnded:
        """Wait no longer for nodes that have to say what was done for them before this one forgot it."""
        return await self._wire.post("/v1/doubts/end", DoubtsEnded, {})
