"""One real node without links: journal, engine, runtime, and the local app on both of its listeners."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from auth.certificates import issue_certificate, mesh_id_of
from auth.gate import Gate
from auth.gatekeeper import Gatekeeper
from auth.invites import Invite, read_invite_token
from auth.joincodes import encode_join_code
from auth.keys import SigningKey
from auth.ledger_schema import LEDGER_MIGRATIONS
from auth.scopes import Admin, AsAgent, Scope
from auth.sqlite_ledger import SqliteLedger
from auth.tokens import Holder, scope_of_token
from gateway.activity import Activity
from gateway.api.mesh import LinkState, LinkStatus, NodeStatus
from gateway.blobs.keeper import BlobKeeper
from gateway.blobs.threads import ThreadedBlobs
from gateway.client import GatewayClient
from gateway.clock import Clock
from gateway.courier.limits import CourierLimits
from gateway.door import PIPE_ALL, ROOMS, Door
from gateway.endpoints.local import local_app
from gateway.endpoints.turn_sockets import TurnSockets
from gateway.engine import Engine
from gateway.engine.effects import AgentChanged, CursorMoved, Handed, Invited, StreamBroken
from gateway.engine.inputs import Now, PageRead
from gateway.engine.own_stream import OwnStream
from gateway.engine.policy import Policy
from gateway.home import Home
from gateway.hosting.inline import InlineHost
from gateway.hosting.ticking import Ticking
from gateway.lookups import Lookups
from gateway.runtime import Runtime
from gateway.serving.servers import make_server, quieten
from gateway.serving.sockets import bind_unix
from outbox.blobfiles import BlobFiles
from outbox.blobref import BlobId
from outbox.ids import AgentId, Epoch, NodeId
from outbox.journal import Journal
from outbox.reader import JournalReader
from outbox.records import Identity
from stateroom.view import NodeView, OwnerView, View

HERE, THERE = NodeId("vps"), NodeId("lab")
ROOT = SigningKey(b"\x01" * 32)
MESH, EPOCH = mesh_id_of(ROOT.public), Epoch("000001-0123456789ab")
REMOTE_AGENTS = {"far": "active", "gone": "removed"}
"""Agents of the other node; nobody owns ``gone`` any more."""


def make_view(version: int, local: Sequence[AgentId], *, online: bool = False) -> View:
    nodes = {
        HERE: NodeView(node=HERE, public_key=bytes(32), role="seed", online=True),
        THERE: NodeView(node=THERE, public_key=bytes(32), role="member", online=online),
    }
    agents = {
        AgentId(name): OwnerView(
            agent=AgentId(name),
            node=THERE,
            owner_epoch=1,
            status="active" if status == "active" else "removed",
        )
        for name, status in REMOTE_AGENTS.items()
    }
    for name in local:
        agents[name] = OwnerView(agent=name, node=HERE, owner_epoch=1, status="active")
    return View(version=version, mesh=MESH, nodes=nodes, agents=agents, cursors={})


@dataclass
class LocalNode:
    """The desk, the outlets and two servers, as the assembled gateway has them."""

    home: Home
    clock: Clock
    limits: CourierLimits
    port: int = 0
    online: bool = False
    link: LinkState = LinkState.DOWN
    room_loaded: bool = True
    blobs_bytes_max: int = 1 << 30
    turns: TurnSockets = field(default_factory=TurnSockets)
    activity: Activity = field(default_factory=Activity)
    told_active: dict[AgentId, int] = field(default_factory=dict)
    """What the other node says of its agents."""

    def open(self) -> None:
        if not self.home.journal.exists():
            Journal.create(self.home.journal, Identity(MESH, HERE, EPOCH), wal_bytes=0).close()
        self.journal = Journal.open(self.home.journal, wal_bytes=0)
        self.reader = JournalReader.open(self.home.journal)
        self.lookups = Lookups(self.home.journal)
        self.identity = self.journal.identity()
        self.journal.database.migrate("auth", LEDGER_MIGRATIONS)
        key = SigningKey(bytes(range(32)))
        self.gatekeeper = Gatekeeper(self._gate(key))
        door = Door(self.gatekeeper, self.clock)

        own = OwnStream(self.identity.epoch)

        def make_engine(view: View, now: Now) -> Engine:
            return Engine(
                self.journal,
                view,
                key.sign,
                self.clock,
                now,
                policy=Policy(),
                limits=self.limits,
                desk=door,
                own=own,
            )

        view, now = self._view(1), Now(self.clock.wall_ms(), self.clock.mono_ms())
        host = InlineHost(Ticking(self.journal, make_engine, view, now))
        self.runtime = Runtime(host, self.reader, view, self.clock)
        self.runtime.outlets = self
        disk = ThreadedBlobs(BlobFiles(self.home.blobs), self.clock)
        self.blobs = BlobKeeper(disk, self.runtime, self.reader, self.blobs_bytes_max)

    def _gate(self, key: SigningKey) -> Gate:
        return Gate(
            mesh=MESH,
            node=HERE,
            node_key=key,
            ticket_key=SigningKey(bytes(32)),
            boot="boot",
            nonce_key=bytes(32),
            certificate=issue_certificate(ROOT, HERE, key.public, self.clock.wall_ms()),
            rooms=(*ROOMS, PIPE_ALL),
            ledger=SqliteLedger(self.journal.database),
        )

    def close(self) -> None:
        self.lookups.close()
        self.reader.close()
        self.journal.close()

    def see(self) -> None:
        """The state room learns who lives here, and whether the other node is online."""
        self.runtime.see(self._view(self.runtime.view.version + 1))

    def _view(self, version: int) -> View:
        return make_view(version, [row.name for row in self.journal.agents()], online=self.online)

    # --- desk

    def authenticate(self, token: str | None, *, trusted_socket: bool) -> Scope | None:
        if token is None:
            return Admin() if trusted_socket else None
        rows = self.reader.agents()
        return scope_of_token(token, [Holder(row.token_hash, AsAgent(row.name)) for row in rows])

    def last_active_ms(self, node: NodeId, agent: AgentId) -> int | None:
        return self.told_active.get(agent) if node == THERE else None

    def links(self) -> Sequence[LinkStatus]:
        return [
            LinkStatus(
                node=THERE,
                state=self.link,
                since_ms=1,
                last_error="refused",
                clock_ahead_ms=-70,
                clock_within_ms=2,
            )
        ]

    def join_code(self, invited: Invited) -> str:
        token = read_invite_token(invited.token)
        invite = next(row for row in self.invites() if row.id == token.id)
        return encode_join_code(self.gatekeeper.join_code(invite, token, ("http://127.0.0.1:1",)))

    def invites(self) -> Sequence[Invite]:
        return self.gatekeeper.invites()[::-1]

    def node_status(self) -> NodeStatus:
        return NodeStatus(software="0.0.0", pid=os.getpid(), started_at_ms=1, room_loaded=self.room_loaded)

    # --- outlets

    def handed(self, turn: Handed) -> None:
        self.turns.handed(turn)

    def cursor_moved(self, moved: CursorMoved) -> None:
        raise AssertionError(moved)

    def stream_broken(self, broken: StreamBroken) -> None:
        raise AssertionError(broken)

    def grown(self, stream: NodeId) -> None:
        """Nobody reads."""

    def page_done(self, read: PageRead) -> None:
        raise AssertionError(read)

    def agent_changed(self, changed: AgentChanged) -> None:
        self.see()

    def blobs_missing(self) -> None:
        raise AssertionError("nobody sends to this node")

    def blob_dropped(self, sha256: BlobId) -> None:
        self.blobs.drop(sha256)

    def reset(self) -> None:
        self.turns.reset()

    # --- running

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["LocalNode"]:
        """Run it; leaving is a stop as SIGTERM would be."""
        quieten()
        self.open()
        unix = bind_unix(self.home.socket)
        unix.listen()
        tcp = socket.create_server(("127.0.0.1", self.port))
        self.port = tcp.getsockname()[1]
        servers = [
            make_server(local_app(self, trusted_socket=True), uploads=True),
            make_server(local_app(self), uploads=True),
        ]
        try:
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(self.runtime.run())
                served = [
                    tasks.create_task(server.serve([bound]))
                    for server, bound in zip(servers, (unix, tcp), strict=True)
                ]
                while not all(server.started for server in servers):
                    await asyncio.sleep(0.005)
                try:
                    yield self
                finally:
                    for server in servers:
                        server.should_exit = True
                        server.force_exit = True
                    await asyncio.wait(served)
                    running.cancel()
        finally:
            unix.close()
            tcp.close()
            self.close()

    def client(self) -> GatewayClient:
        """The operator, over the Unix socket."""
        return GatewayClient(socket=self.home.socket)

    def token(self, name: str) -> str:
        """An agent's token, as its file has it."""
        return self.home.token(AgentId(name)).read_text().strip()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def operator(self) -> httpx.AsyncClient:
        """Plain HTTP over the Unix socket, without a token."""
        transport = httpx.AsyncHTTPTransport(uds=str(self.home.socket))
        return httpx.AsyncClient(base_url="http://localhost", transport=transport, trust_env=False)

    def http(self, name: str | None = None, **headers: str) -> httpx.AsyncClient:
        """Plain HTTP over loopback, as an agent (or as nobody)."""
        if name is not None:
            headers["Authorization"] = f"Bearer {self.token(name)}"
        return httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False)


@pytest.fixture
def stopped(short_dir: Path) -> LocalNode:
    """A node that does not run yet."""
    home = Home(short_dir / "home", short_dir / "gateway-mesh")
    home.create()
    return LocalNode(home, Clock(), CourierLimits())


@pytest.fixture
async def node(stopped: LocalNode) -> AsyncIterator[LocalNode]:
    """A running node with the agents jen and bob."""
    async with stopped.serving():
        async with stopped.client() as gateway:
            await gateway.add_agent("jen")
            await gateway.add_agent("bob")
        yield stopped
