"""One run of a simulated gateway: the parts of the real one, put together as ``gateway.app`` does.

Left out, and tested elsewhere: HTTP, tickets, Yjs. What survives the run is its home.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from auth.errors import AuthError
from gateway.beats import BeatCounter
from gateway.blobs.keeper import BlobKeeper
from gateway.bouncer import Bouncer
from gateway.courier.limits import CourierLimits
from gateway.door import PIPE_ROOM, check_member
from gateway.endpoints.turn_sockets import TurnSockets
from gateway.engine import Engine
from gateway.engine.blobs import BLOBS_FULL
from gateway.engine.effects import Admitted, Effect
from gateway.engine.inputs import Input, Now, ViewChanged
from gateway.engine.own_stream import OwnStream, Reason
from gateway.engine.policy import Policy
from gateway.feed import Feed
from gateway.harness.sim.aside import SimLine
from gateway.harness.sim.blobdisk import SimBlobs
from gateway.harness.sim.clocks import SimClock
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.disk import Disk
from gateway.harness.sim.lacking import NoDesk, NoTokens
from gateway.harness.sim.loop import SimLoop
from gateway.harness.sim.network import Network
from gateway.harness.sim.peering import FORBIDDEN, SimPeering
from gateway.harness.sim.room import SimRooms, Stored
from gateway.harness.sim.signing import Keys
from gateway.harness.sim.wire import WireEnd
from gateway.hosting.host import EngineHost
from gateway.hosting.inline import InlineHost
from gateway.hosting.piped import PipedHost
from gateway.hosting.serving import Serving
from gateway.hosting.ticking import Ticking
from gateway.limits import HEAD_EVERY_S
from gateway.links.fetching import Fetcher
from gateway.links.link import Link
from gateway.links.local import Local
from gateway.links.reach import Reach
from gateway.links.registry import Registry
from gateway.links.socket import DialledSocket
from gateway.outlets import GatewayOutlets
from gateway.retaining import retain
from gateway.runtime import Runtime
from gateway.tokens import TokenTable
from outbox.chain import Head, Verify
from outbox.ids import NodeId, epoch_ordinal
from outbox.records import Identity
from stateroom.outflow import GONE
from stateroom.revocations import revocation_body
from stateroom.sockets import recv_of, send_of
from stateroom.view import View

BLOBS_BYTES_MAX = 1 << 30


@dataclass
class SimHome:
    """What a node keeps when its process ends."""

    identity: Identity
    disk: Disk
    clock: SimClock
    keys: Keys
    stored: Stored = field(default_factory=dict)
    beats: bool = False
    """It says that it is alive."""
    counter: BeatCounter = field(default_factory=lambda: BeatCounter(None))
    """Of its heartbeats: what a home keeps of it is as good as never to forget."""
    reachable: bool = True
    """Others can dial it."""
    policy: Policy = field(default_factory=Policy)
    limits: CourierLimits = field(default_factory=CourierLimits)
    blobs_bytes_max: int = BLOBS_BYTES_MAX
    """What its blobs may take."""
    trips: Dice | None = None
    """How long requests are on their way to the process of its journal, if it has one."""
    epoch_note: Reason | None = None
    """Why the next start has to begin an epoch: a backup was put back, or a sync has failed."""
    lost: list[Disk] = field(default_factory=list)
    """Disks that were the node's and are no longer: what they say beyond its own disk, it has forgotten."""
    put_back: Head | None = None
    """The head of the backup with which it was last told to begin a new epoch."""
    went_back_to: int = 0
    """The ordinal of the epoch in which it was when it last went back."""
    went_back_as: int = 0
    """Which one it was of all that went back in this world."""

    def begun(self) -> None:
        """The epoch that the note asks for has begun."""
        self.epoch_note = None

    def failed(self) -> None:
        """A sync has failed: whatever note is there says as much."""
        self.epoch_note = self.epoch_note or Reason.FAILED_SYNC

    blobs: SimBlobs = field(init=False)

    def __post_init__(self) -> None:
        self.blobs = SimBlobs(lambda: self.disk.full)

    @property
    def name(self) -> str:
        """The node's."""
        return self.identity.node

    def histories(self) -> list[Disk]:
        """What it knows, and what it knew."""
        return [self.disk, *self.lost]

    def copied(self, clock: SimClock) -> "SimHome":
        """The same home on another machine, which nobody can dial."""
        return SimHome(
            self.identity,
            self.disk.image(),
            clock,
            self.keys,
            dict(self.stored),
            reachable=False,
            policy=self.policy,
            limits=self.limits,
        )

    def go_back(self, image: Disk, stored: Stored, note: Reason | None) -> None:
        """A backup takes the place of what is there: by ``gateway restore``, which leaves a note, or by hand,
        where one of a failed sync may lie in the home.
        """
        told = note is Reason.RESTORE
        self.lost.append(self.disk)
        image.take_place_of(self.disk)
        self.disk, self.stored = image, dict(stored)
        self.went_back_to = epoch_ordinal(image.identity().epoch)
        self.epoch_note = note
        self.put_back = image.head() if told else None


class _Seen(Engine):
    """Tells when it takes note of a view: they wait in its queue, behind a slow disk for seconds."""

    def __init__(self, told: Callable[[View], None], *rest: Any, **more: Any) -> None:
        super().__init__(*rest, **more)
        self._told = told

    def apply(self, inputs: Iterable[Input], now: Now) -> list[Effect]:
        """As ``Engine``."""
        batch = list(inputs)
        effects = super().apply(batch, now)
        for item in batch:
            if isinstance(item, ViewChanged):
                self._told(item.view)
        return effects


Resident = Callable[["SimGateway"], Coroutine[Any, Any, None]]
"""An agent's life with one run of its gateway."""


class SimGateway:
    """One process of a node."""

    def __init__(self, home: SimHome, network: Network, loop: SimLoop, *, listens: bool = True) -> None:
        self.name = home.name
        self.home = home
        self.loop = loop
        self.residents: list[Resident] = []
        self.runtime: Runtime
        self.turns = TurnSockets()
        self.rooms: SimRooms
        self.blobs: BlobKeeper
        self.registry: Registry
        self.began_ms = 0
        """By its wall clock."""
        self.on_exit: Callable[[BaseException | None], None] = lambda _error: None
        """The process ended by itself."""
        self.has_ended = False
        """Its engine runs no more: nobody is answered."""
        self._network = network
        self._listens = listens
        self._local: Local
        self._tasks: asyncio.TaskGroup | None = None
        self._line: SimLine | None = None

    def start(self) -> None:
        """Begin; runs in the process's own loop."""
        self.loop.create_task(self.run()).add_done_callback(self._over)

    async def run(self) -> None:
        """Serve until killed."""
        home, clock = self.home, self.home.clock
        clock.boot()
        self.began_ms = clock.wall_ms()
        self._store, self._reader = home.disk.opened()
        identity = self._reader.identity()
        self._own = OwnStream(identity.epoch, home.epoch_note)
        self.rooms = rooms = SimRooms(identity, home.keys, clock, home.stored)
        rooms.beats = home.counter
        view = rooms.view()
        host = await self._host(view, Now(clock.wall_ms(), clock.mono_ms()))
        self.runtime = runtime = Runtime(host, self._reader, view, clock)
        was_full = any(row.kind == BLOBS_FULL for row in self._reader.incidents(open_only=True))
        self.blobs = BlobKeeper(
            home.blobs, runtime, self._reader, home.blobs_bytes_max, refused_bytes=int(was_full)
        )
        self._local = local = Local(
            identity, runtime, self._reader, clock, self._key_of, home.policy.mirror, self.blobs, rooms
        )
        self.registry = registry = Registry(local)
        fetcher = Fetcher(self.blobs, runtime, registry, clock, home.blobs_bytes_max)
        reach = Reach((f"http://{self.name}",) if home.reachable else (), None, loopback=False)
        peering = SimPeering(local, registry, rooms, reach, network=self._network, party=self, keys=home.keys)
        runtime.outlets = GatewayOutlets(
            self.turns,
            registry,
            rooms,
            cast("TokenTable", NoTokens()),
            began=home.begun,
            blobs=self.blobs,
            missing=fetcher.missing,
        )
        rooms.say_agents(self._reader.agents())
        for node, head in self._reader.cursors().items():
            rooms.cursor_moved(node, head)
        rooms.watch(rooms.made)
        rooms.watch(runtime.see)
        rooms.watch(registry.see)
        rooms.watch(peering.see)
        rooms.watch(Bouncer(identity.node, registry, rooms, self.turns).see)
        if self._listens:
            self._network.join(self)
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            tasks.create_task(self._run_engine(runtime))
            if home.beats:
                tasks.create_task(rooms.keep_beating())
            tasks.create_task(rooms.publish_cursors(lambda: runtime.feed.head))
            tasks.create_task(self._publish_head(reach, runtime.feed))
            tasks.create_task(retain(runtime, self.blobs))
            tasks.create_task(registry.run())
            tasks.create_task(fetcher.run())
            tasks.create_task(peering.run())
            for resident in self.residents:
                tasks.create_task(resident(self))

    async def _run_engine(self, runtime: Runtime) -> None:
        try:
            await runtime.run()
        finally:
            self.has_ended = True

    def digest(self) -> str:
        """Of what its state room shows; "" before it has one."""
        return self.rooms.digest() if self._tasks is not None else ""

    def unheard_ms(self, node: NodeId) -> int | None:
        """For how long the engine knows of no word of another node; None when of none ever in this run."""
        heard_ms = self.rooms.known_ms.get(node)
        return None if heard_ms is None else self.home.clock.mono_ms() - heard_ms

    def _over(self, task: "asyncio.Task[None]") -> None:
        if not self.loop.dead and not self.loop.doomed:
            self.on_exit(task.exception() if not task.cancelled() else None)

    def accept(self, channel: str, peer: str, end: WireEnd) -> None:
        """Serve a connection of another node."""
        if self._tasks is not None and not self.loop.doomed:
            self._tasks.create_task(self._serve(channel, peer, end))

    async def _serve(self, channel: str, peer: str, end: WireEnd) -> None:
        node, key = NodeId(peer), self.home.keys.key(peer).raw
        admitted = Admitted(req=0, node=node, room=channel, public_key=key, session_id="", new_member=False)
        try:
            check_member(self.rooms.view(), admitted)
        except AuthError:
            about = (record for record in self.rooms.revocations() if revocation_body(record).node == node)
            await end.close(FORBIDDEN, " ".join(record.text for record in about))
            return
        self.registry.opened(node, channel)
        try:
            room = self.rooms.channel(channel)
            if room is not None:
                connection: Any = end
                await room.serve(send_of(connection), recv_of(connection), peer=peer)
                await end.close(GONE.code)
            else:
                assert channel == PIPE_ROOM
                await self._link(node, end)
        finally:
            self.registry.closed(node, channel)

    async def _link(self, peer: Any, end: WireEnd) -> None:
        socket = DialledSocket(cast("Any", end))
        verify = self.home.keys.key(peer).verify
        await self.registry.run_link(Link(self._local, peer, verify, socket, dialled=False))

    def _key_of(self, node: NodeId) -> Verify | None:
        view = self.runtime.view
        known = view.node(node) or view.revoked(node)
        return self.home.keys.key(node).verify if known is not None else None

    async def _host(self, view: View, now: Now) -> EngineHost:
        if self.home.trips is None:
            return InlineHost(self._ticking(view, now))
        self._line = SimLine(Serving(self._ticking), self.home.trips)
        return await PipedHost.build(self._line, view, now)

    def busy(self, us: int) -> None:
        """A commit takes so long: this process stands still, or that of its journal."""
        if self._line is not None:
            self._line.busy(us)
        else:
            self.loop.stop_for(us)

    def _ticking(self, view: View, now: Now) -> Ticking:
        return Ticking(self._store, self._engine, view, now)

    def _engine(self, view: View, now: Now) -> Engine:
        home = self.home
        sign = home.keys.key(self.name).sign
        return _Seen(
            self.rooms.told,
            self._store,
            view,
            sign,
            home.clock,
            now,
            policy=home.policy,
            limits=home.limits,
            desk=NoDesk(),
            own=self._own,
        )

    async def _publish_head(self, reach: Reach, feed: Feed) -> None:
        said = None
        while True:
            if feed.head != said:
                said = feed.head
                self.rooms.say_node(reach.endpoints, said, self._reader.floor())
            self.rooms.say_agents(self._reader.agents())
            await asyncio.sleep(HEAD_EVERY_S)
