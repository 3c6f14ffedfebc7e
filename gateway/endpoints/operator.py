"""HTTP routes of the operator: agents of this node, invites for others, what the outbox forgets."""

import asyncio
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from auth.invites import Invite as KnownInvite
from auth.tokens import hash_token, make_token
from gateway.api.answers import ToldAnswer
from gateway.api.operator import AgentAdded, AgentRemoved, AgentSet, InviteAnswer, InviteRow, PrunedAnswer
from gateway.door import PIPE_ALL
from gateway.endpoints.actors import need_admin
from gateway.endpoints.answers import json
from gateway.endpoints.bodies import (
    AddAgentBody,
    InviteBody,
    MaintenanceBody,
    NoQuery,
    PruneOutboxBody,
    RevokeBody,
    SetAgentBody,
)
from gateway.endpoints.desk import LocalDesk
from gateway.endpoints.errors import BadRequest
from gateway.endpoints.guard import principal_of
from gateway.endpoints.reading import body_of, query_of
from gateway.engine.effects import AgentChanged, Invited, Pruned, Told
from gateway.engine.inputs import AddAgent, Maintain, Prune, RemoveAgent, SetAgent
from gateway.engine.knocks import Invite, RevokeInvite
from gateway.home import write_private
from outbox.envelope import MaintenanceNotice
from outbox.errors import MeshError, NameTaken
from outbox.ids import AgentId, NodeId, agent_id, node_id
from outbox.timestamps import rfc3339
from stateroom.limits import FALLBACKS_MAX, GROUPS_MAX


class OperatorRoutes:
    """Everything here needs the admin."""

    def __init__(self, desk: LocalDesk) -> None:
        self._desk = desk
        self._runtime = desk.runtime
        self._adding = asyncio.Lock()

    def routes(self) -> list[Route]:
        """Paths and methods."""
        return [
            Route("/v1/agents", self.add_agent, methods=["POST"]),
            Route("/v1/agents/{name}", self.set_agent, methods=["PATCH"]),
            Route("/v1/agents/{name}", self.remove_agent, methods=["DELETE"]),
            Route("/v1/outbox/prune", self.prune, methods=["POST"]),
            Route("/v1/maintenance", self.maintenance, methods=["POST"]),
            Route("/v1/invites", self.invites, methods=["GET"]),
            Route("/v1/invites", self.invite, methods=["POST"]),
            Route("/v1/invites/{id}", self.revoke, methods=["DELETE"]),
            Route("/v1/nodes/{node}/revoke", self.revoke_node, methods=["POST"]),
        ]

    async def add_agent(self, request: Request) -> Response:
        """Name an agent that lives here. 201; 409 when the name is taken."""
        query_of(request, NoQuery)
        need_admin(principal_of(request))
        body = await body_of(request, AddAgentBody)
        name = agent_id(body.name)
        token_file = self._desk.home.token(name)
        async with self._adding:
            if any(row.name == name for row in self._desk.reader.agents()):
                raise NameTaken(f"{name} lives here already", hint=f"its token is in {token_file}")
            await self._add(name, body)
        return json(AgentAdded(name, str(token_file), self._unknown(_nodes(body.fallback))), 201)

    async def _add(self, name: AgentId, body: AddAgentBody) -> None:
        """The file first: a token that the journal knows but nobody holds would lock the agent out."""
        token_file = self._desk.home.token(name)
        token = make_token(self._desk.clock.entropy(32))
        write_private(token_file, token.text.encode() + b"\n")
        try:
            request = AddAgent(
                req=self._runtime.req(),
                name=name,
                token_hash=hash_token(token.text),
                fallback=_nodes(body.fallback),
                grace_ms=body.grace_ms,
                groups=_groups(body.groups),
                stands_in_for=node_id(body.fallback_of) if body.fallback_of is not None else None,
            )
            await self._runtime.ask(request)
        except MeshError:
            with suppress(OSError):
                token_file.unlink(missing_ok=True)
            raise

    async def set_agent(self, request: Request) -> Response:
        """Change the fallback nodes, the grace or the groups of an agent that lives here."""
        query_of(request, NoQuery)
        need_admin(principal_of(request))
        body = await body_of(request, SetAgentBody)
        changed = await self._runtime.ask(
            SetAgent(
                req=self._runtime.req(),
                name=agent_id(request.path_params["name"]),
                fallback=_nodes(body.fallback) if body.fallback is not None else None,
                grace_ms=body.grace_ms,
                groups=_groups(body.groups) if body.groups is not None else None,
            )
        )
        assert isinstance(changed, AgentChanged)
        unknown = self._unknown(changed.fallback)
        return json(AgentSet(changed.name, changed.fallback, changed.grace_ms, changed.groups, unknown))

    def _unknown(self, nodes: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
        """Nodes that nobody has admitted: they stand in once they have joined."""
        return tuple(node for node in nodes if self._runtime.view.node(node) is None)

    async def remove_agent(self, request: Request) -> Response:
        """Take an agent away; its unfinished turns fail."""
        query_of(request, NoQuery)
        need_admin(principal_of(request))
        name = agent_id(request.path_params["name"])
        changed = await self._runtime.ask(RemoveAgent(req=self._runtime.req(), name=name))
        assert isinstance(changed, AgentChanged)
        with suppress(OSError):  # a token that nobody accepts any more may stay
            self._desk.home.token(name).unlink(missing_ok=True)
        return json(AgentRemoved(name))

    async def prune(self, request: Request) -> Response:
        """Forget what may go, or as much of it as one tick can."""
        query_of(request, NoQuery)
        need_admin(principal_of(request))
        force = (await body_of(request, PruneOutboxBody)).force
        pruned = await self._runtime.ask(Prune(req=self._runtime.req(), force=force))
        assert isinstance(pruned, Pruned)
        return json(PrunedAnswer(pruned.floor, pruned.entries, pruned.bytes, pruned.more))

    async def maintenance(self, request: Request) -> Response:
        """Tell every node that this one will be away, or that it is back: 202, it is in the outbox."""
        query_of(request, NoQuery)
        need_admin(principal_of(request))
        body = await body_of(request, MaintenanceBody)
        notice = MaintenanceNotice(until=body.until, reason=body.reason, over=body.over)
        told = await self._runtime.ask(Maintain(self._runtime.req(), notice))
        assert isinstance(told, Told)
        return json(ToldAnswer(told.event_id, told.duplicate), 202)

    async def invites(self, request: Request) -> Response:
        """All invites, newest first."""
        query_of(request, NoQuery)
        need_admin(principal_of(request))
        return json([_invite_row(invite) for invite in self._desk.invites()])

    async def invite(self, request: Request) -> Response:
        """Make an invite for one node. 201 with its join code."""
        query_of(request, NoQuery)
        need_admin(principal_of(request))
        body = await body_of(request, InviteBody)
        invited = await self._runtime.ask(
            Invite(
                req=self._runtime.req(),
                expected_node=node_id(body.node) if body.node is not None else None,
                expected_key=body.key_thumbprint,
                reads_all=body.reads_all,
                ttl_ms=body.ttl_seconds * 1000,
            )
        )
        assert isinstance(invited, Invited)
        code = self._desk.join_code(invited)
        return json(InviteAnswer(invited.invite_id, code, rfc3339(invited.expires_at_ms)), 201)

    async def revoke(self, request: Request) -> Response:
        """Take an invite back; 404 or 409 when there is none or it was used."""
        query_of(request, NoQuery)
        need_admin(principal_of(request))
        invite_id = request.path_params["id"]
        await self._runtime.ask(RevokeInvite(req=self._runtime.req(), invite_id=invite_id))
        return Response(status_code=204)

    async def revoke_node(self, request: Request) -> Response:
        """Put a node out of the mesh; 403 where this node may not sign that, 404 when there is none."""
        query_of(request, NoQuery)
        need_admin(principal_of(request))
        body = await body_of(request, RevokeBody)
        node = node_id(request.path_params["node"])
        return json(await self._desk.revoke(node, ban=body.ban, reason=body.reason))


def _nodes(names: tuple[str, ...]) -> tuple[NodeId, ...]:
    """Raises InvalidId; BadRequest when there are too many."""
    if len(names) > FALLBACKS_MAX:
        raise BadRequest(f"an agent has at most {FALLBACKS_MAX} fallback nodes")
    return tuple(dict.fromkeys(node_id(name) for name in names))


def _groups(names: tuple[str, ...]) -> tuple[str, ...]:
    """Raises InvalidId; BadRequest when there are too many."""
    if len(names) > GROUPS_MAX:
        raise BadRequest(f"an agent is in at most {GROUPS_MAX} groups")
    return tuple(dict.fromkeys(agent_id(name) for name in names))


def _invite_row(invite: KnownInvite) -> InviteRow:
    return InviteRow(
        invite_id=invite.id,
        status=invite.status,
        node=invite.expected_node,
        reads_all=PIPE_ALL in invite.rooms,
        created_at=rfc3339(invite.created_at_ms),
        expires_at=rfc3339(invite.expires_at_ms),
    )
