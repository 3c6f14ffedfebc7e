"""HTTP routes that show the mesh as this node sees it: status, nodes, agents."""

from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.api.mesh import AgentRow, LinkState, MaintenanceRow, NodeRow, StatusAnswer, Waiting
from gateway.endpoints.answers import json
from gateway.endpoints.bodies import NoQuery
from gateway.endpoints.desk import LocalDesk, surroundings_of
from gateway.endpoints.reading import query_of
from gateway.endpoints.surroundings import Surroundings
from outbox import base64url
from outbox.chain import Checkpoint, Head
from outbox.ids import AgentId, NodeId, Seq
from outbox.reader import JournalReader
from stateroom.view import NodeView, OwnerView, RevocationView, View


class Health(msgspec.Struct, frozen=True):
    """The answer to a probe."""

    ok: bool


class MeshRoutes:
    """Reads of the View, the journal and the links."""

    def __init__(self, desk: LocalDesk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        """Paths and methods."""
        return [
            Route("/v1/status", self.status, methods=["GET"]),
            Route("/v1/nodes", self.nodes, methods=["GET"]),
            Route("/v1/agents", self.agents, methods=["GET"]),
            Route("/livez", self.livez, methods=["GET"]),
            Route("/readyz", self.readyz, methods=["GET"]),
        ]

    async def status(self, request: Request) -> Response:
        """This node."""
        query_of(request, NoQuery)
        desk, reader = self._desk, self._desk.reader
        tallies, around = await desk.lookups.ask(_count), surroundings_of(desk)
        answer = StatusAnswer(
            node=desk.identity.node,
            mesh=desk.identity.mesh,
            epoch=desk.identity.epoch,
            head_seq=desk.runtime.feed.head.seq,
            floor_seq=_floor_seq(reader.floor(), desk.runtime.feed.head),
            process=desk.node_status(),
            ready=self._ready(),
            storage_full=desk.runtime.storage_full,
            deliveries=tallies.deliveries,
            waiting=[
                Waiting(node=node, state=around.unaccepted(node), count=count)
                for node, count in tallies.unaccepted.items()
            ],
            received=tallies.received,
            agents=len(reader.agents()),
            active=self._active_here(),
            links=list(around.links.values()),
            incidents_open=tallies.incidents_open,
            quarantined=tallies.quarantined,
        )
        return json(answer)

    async def nodes(self, request: Request) -> Response:
        """All nodes, by name."""
        query_of(request, NoQuery)
        around = surroundings_of(self._desk)
        view = around.view
        out = [word for name in view.revocations if (word := view.revoked(name)) is not None]
        rows = [self._node(name, around) for name in view.nodes] + [self._former(word) for word in out]
        return json(sorted(rows, key=lambda row: row.node))

    async def agents(self, request: Request) -> Response:
        """All agents ever seen, by name; those that live here even before the state room knows them."""
        query_of(request, NoQuery)
        view, here = self._desk.runtime.view, self._desk.identity.node
        local = {row.name for row in self._desk.reader.agents()}
        rows = []
        for name in sorted(local | set(view.agents)):
            owner = view.owner(name)
            node = here if name in local else (owner.node if owner is not None else None)
            online = node == here or (node is not None and view.online(node))
            row = AgentRow(
                name=name,
                node=node,
                status="active" if node is not None else "removed",
                online=online,
                here=name in local,
                fallback=owner.fallback if owner is not None else (),
                grace_ms=owner.grace_ms if owner is not None else 0,
                groups=owner.groups if owner is not None else (),
                last_active_ms=self._last_active_ms(name, owner),
            )
            rows.append(row)
        return json(rows)

    def _active_here(self) -> dict[AgentId, int]:
        desk = self._desk
        times = ((row.name, desk.activity.last_ms(row.name)) for row in desk.reader.agents())
        return {name: at_ms for name, at_ms in times if at_ms is not None}

    def _last_active_ms(self, agent: AgentId, owner: OwnerView | None) -> int | None:
        """The latest of what is known here, and of what those say who may have heard it, by our clock."""
        desk = self._desk
        nodes = (owner.node, *owner.fallback) if owner is not None else ()
        ahead = {link.node: link.clock_ahead_ms or 0 for link in desk.links()}
        told = [(desk.last_active_ms(node, agent), ahead.get(node, 0)) for node in nodes]
        times = [desk.activity.last_ms(agent), *(at_ms - by for at_ms, by in told if at_ms is not None)]
        return max((at_ms for at_ms in times if at_ms is not None), default=None)

    async def livez(self, _request: Request) -> Response:
        """The process answers."""
        return json(Health(ok=True))

    async def readyz(self, _request: Request) -> Response:
        """The journal is writable and the state room is loaded; 503 otherwise."""
        ready = self._ready()
        return json(Health(ok=ready), 200 if ready else 503)

    def _ready(self) -> bool:
        return self._desk.node_status().room_loaded and not self._desk.runtime.storage_full

    def _node(self, name: NodeId, around: Surroundings) -> NodeRow:
        desk, view, here = self._desk, around.view, around.here
        node, link, said = view.nodes[name], around.links.get(name), around.announced.get(name)
        state = link.state if link is not None else LinkState.DOWN
        read, seen = desk.reader.cursor(name), view.cursor(name, here)
        knows_us = seen is not None and seen[0] == desk.identity.epoch
        return NodeRow(
            node=name,
            key=base64url.encode(node.public_key),
            role=node.role,
            reads_all=view.reads_all(name),
            here=name == here,
            online=name == here or node.online,
            last_seen_ms=node.last_seen_ms,
            link=None if name == here else state,
            clock_ahead_ms=link.clock_ahead_ms if link is not None else None,
            endpoints=node.endpoints,
            head_seq=desk.runtime.feed.head.seq if name == here else _head_seq(view, node),
            read_seq=read.seq if read is not None else None,
            maintenance=MaintenanceRow(*said) if said is not None else None,
            lag=desk.runtime.feed.head.seq - seen[1] if seen is not None and knows_us else None,
        )

    def _former(self, word: RevocationView) -> NodeRow:
        read = self._desk.reader.cursor(word.node)
        return NodeRow(
            node=word.node,
            key=base64url.encode(word.public_key),
            role="none",
            reads_all=False,
            here=word.node == self._desk.identity.node,
            online=False,
            last_seen_ms=None,
            link=None,
            clock_ahead_ms=None,
            endpoints=(),
            head_seq=word.last.seq if word.last is not None else Seq(0),
            read_seq=read.seq if read is not None else None,
            lag=None,
            revoked="banned" if word.ban else "evicted",
            reason=f"by {word.by}: {word.reason}".rstrip(": "),
        )


class _Tallies(NamedTuple):
    """What is counted row by row."""

    deliveries: dict[str, int]
    unaccepted: dict[NodeId | None, int]
    received: dict[str, int]
    incidents_open: int
    quarantined: int


def _count(reader: JournalReader) -> _Tallies:
    return _Tallies(
        reader.count_deliveries(),
        reader.count_unaccepted(),
        reader.count_received(),
        sum(reader.count_open_incidents().values()),
        reader.count_quarantined(),
    )


def _floor_seq(floor: Checkpoint | None, head: Head) -> Seq:
    return floor.seq if floor is not None and floor.epoch == head.epoch else Seq(0)


def _head_seq(view: View, node: NodeView) -> Seq:
    """How far a node's outbox goes, by the latest of its own words: its record, or its cursors' head."""
    said = view.cursors.get(node.node)
    if said is None or said.head[0] != node.outbox_epoch:
        return node.head_seq
    return max(node.head_seq, said.head[1])
