"""A running gateway: every part put together, started and stopped in order.

Nothing needs an orderly stop: the journal is consistent at every moment, and a start does the same after a
SIGKILL as after a SIGTERM.
"""

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack

import structlog
import uvloop

from auth.gatekeeper import Gatekeeper
from auth.joiner import Joiner
from auth.keyring import Keyring
from auth.sqlite_ledger import SqliteLedger
from gateway.activity import Activity
from gateway.beats import BeatCounter
from gateway.blobs.keeper import BlobKeeper
from gateway.blobs.threads import ThreadedBlobs
from gateway.bouncer import Bouncer
from gateway.clock import Clock
from gateway.config import Config
from gateway.desk import GatewayDesk
from gateway.endpoints.local import local_app
from gateway.endpoints.peer import PeerDesk, peer_app
from gateway.endpoints.turn_sockets import TurnSockets
from gateway.engine.blobs import BLOBS_FULL
from gateway.engine.inputs import Now
from gateway.engine.own_stream import Reason
from gateway.engine.policy import Policy
from gateway.epochmark import EpochMark, Mark
from gateway.errors import HomeError
from gateway.feed import Feed
from gateway.home import Home, damaged, read_record, read_text
from gateway.limits import HEAD_EVERY_S
from gateway.links.fetching import Fetcher
from gateway.links.keys import MemberKeys
from gateway.links.local import Local
from gateway.links.peering import Peering
from gateway.links.reach import Issuer, reach_of
from gateway.links.registry import Registry
from gateway.links.tickets import TicketOffice
from gateway.lookups import Lookups
from gateway.outlets import GatewayOutlets
from gateway.retaining import retain
from gateway.revoking import Remembering, Revoker
from gateway.rooms import Rooms
from gateway.runtime import Runtime
from gateway.serving.limits import WAITING_MAX
from gateway.serving.servers import make_server, quieten, serve
from gateway.serving.sockets import allow_open_files, bind_unix, listen_tcp
from gateway.telemetry import start_logging
from gateway.tokens import TokenTable, admin_hash
from gateway.writing.choice import open_writer
from gateway.writing.opening import Boot, Opening
from gateway.writing.writer import collect_seldom
from outbox.blobfiles import BlobFiles
from outbox.database import Database
from outbox.errors import MeshError, StorageFailed
from outbox.groups import first_of
from outbox.lock import HomeLock
from outbox.reader import JournalReader
from stateroom.errors import InvalidRecord
from stateroom.view import View

log = structlog.get_logger(__name__)


class Gateway:
    """One node's gateway, opened from its home. ``run`` until cancelled, then ``close``."""

    def __init__(self, home: Home, config: Config, clock: Clock) -> None:
        """Open everything that can fail before anything is served.

        Raises HomeError, HomeLocked, StorageFailed, BrokenChain, BadCheckpoint and the keyring's errors.
        """
        home.check()
        home.need_journal()
        self._stack = AsyncExitStack()
        lock = self._stack.enter_context(HomeLock(home.lock))
        self._home, self._config, self._clock = home, config, clock
        self._started_at_ms = clock.wall_ms()
        self._activity = Activity()
        self._key = Keyring(home.keys).kept_node_key()
        self._opening = opening = Opening(home, config, Boot.made(clock))
        self._writer = open_writer(opening, clock, lock)
        self._stack.push_async_callback(self._writer.close)
        self._reader = JournalReader.open(home.journal)
        self._stack.callback(self._reader.close)
        self._lookups = Lookups(home.journal)
        self._stack.callback(self._lookups.close)
        self._identity = self._reader.identity()
        self._mark = EpochMark(home.epoch_mark)
        ledger = Database.open_read_only(home.journal)
        self._stack.callback(ledger.close)
        # Answers challenges and lists; whatever changes the ledger is asked of the writer's own gatekeeper,
        # where each address has a bucket of its own.
        gate = opening.gate(clock, self._identity, self._key, SqliteLedger(ledger))
        self._gatekeeper = Gatekeeper(gate)
        self._tokens = TokenTable(self._reader, admin_hash(home, clock))
        self._peer_socket = listen_tcp(config.listen.host, config.listen.port)
        self._stack.callback(self._peer_socket.close)
        host, port = self._peer_socket.getsockname()[:2]
        self.reach = reach_of(config.public.endpoints, _issuer(home), host, port)

    async def close(self) -> None:
        """Let go of files, sockets and the home."""
        await self._stack.aclose()

    async def run(self, ready: Callable[["Gateway"], None] = lambda _: None) -> None:
        """Serve until cancelled. Raises StorageFailed when the disk can no longer be trusted."""
        if self._writer.blobs_gone:
            log.warning("blobs.missing", blobs=self._writer.blobs_gone)
        rooms = Rooms(self._home.room, self._identity, self._key, self._clock)
        rooms.beats = BeatCounter(self._home.beats)
        await rooms.load()
        self._introduce(rooms)
        view = rooms.view()
        self._policy = self._policy_for(view)
        host = await self._writer.host(view, Now(self._clock.wall_ms(), self._clock.mono_ms()))
        runtime = Runtime(host, self._reader, view, self._clock)
        blobs = self._keeper(runtime)
        keys = MemberKeys(lambda: runtime.view)
        local = Local(
            self._identity, runtime, self._reader, self._clock, keys, self._policy.mirror, blobs, rooms
        )
        registry = Registry(local)
        mirrored_max = self._config.blobs.mirrored_bytes_max
        fetcher = Fetcher(blobs, runtime, registry, self._clock, mirrored_max)
        joiner = Joiner(self._identity.node, self._key)
        office = TicketOffice(joiner, self._clock, allow_plain=self._config.listen.allow_plain)
        self._stack.push_async_callback(office.close)
        peering = Peering(local, registry, rooms, office, self.reach)
        turns = TurnSockets()
        runtime.outlets = GatewayOutlets(
            turns, registry, rooms, self._tokens, began=self._mark.drop, blobs=blobs, missing=fetcher.missing
        )
        put_out = Bouncer(self._identity.node, registry, rooms, turns).see
        kept = Remembering(runtime, rooms, self._gatekeeper).see
        rooms.watch(runtime.see, registry.see, peering.see, put_out, kept)
        desk = self._desk(runtime, registry, peering, turns, blobs, rooms=rooms)
        peer_desk = PeerDesk(local, self._gatekeeper, rooms, registry, self.reach.names)
        unix = bind_unix(self._home.socket)
        self._stack.callback(unix.close)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(host.watch())
            tasks.create_task(runtime.run())
            tasks.create_task(rooms.run(lambda: runtime.feed.head, lambda: self._beat(rooms, registry)))
            tasks.create_task(self._publish_head(rooms, runtime.feed))
            tasks.create_task(retain(runtime, blobs))
            tasks.create_task(registry.run())
            tasks.create_task(fetcher.run())
            tasks.create_task(peering.run())
            # Inside, so that they close first: what is open says goodbye while the rest still runs.
            async with asyncio.TaskGroup() as listeners:
                peers = make_server(peer_app(peer_desk), waiting_max=WAITING_MAX)
                listeners.create_task(serve(peers, self._peer_socket))
                listeners.create_task(
                    serve(make_server(local_app(desk, trusted_socket=True), uploads=True), unix)
                )
                if self._config.local.port:
                    tcp = listen_tcp("127.0.0.1", self._config.local.port)
                    self._stack.callback(tcp.close)
                    listeners.create_task(serve(make_server(local_app(desk), uploads=True), tcp))
                log.info("gateway.ready", node=self._identity.node, endpoints=self.reach.endpoints)
                collect_seldom()
                ready(self)

    def distrust(self) -> None:
        """The disk failed: what was under way may or may not be on it, so the next start begins a new
        epoch."""
        try:
            self._mark.leave(Mark(Reason.FAILED_SYNC))
        except HomeError as error:
            log.error("epoch.unmarked", why=str(error), hint=error.hint)  # noqa: TRY400 - no bug

    # --- parts

    def _keeper(self, runtime: Runtime) -> BlobKeeper:
        disk = ThreadedBlobs(BlobFiles(self._home.blobs), self._clock)
        was_full = any(row.kind == BLOBS_FULL for row in self._reader.incidents(open_only=True))
        bytes_max = self._config.blobs.bytes_max
        return BlobKeeper(disk, runtime, self._reader, bytes_max, refused_bytes=int(was_full))

    def _policy_for(self, view: View) -> Policy:
        policy = self._opening.policy(view, self._identity.node)
        if policy.mirror.nodes != self._config.policy(seed=self._opening.is_seed).mirror.nodes:
            hint = "on a seed: gateway invite NODE --reads-all; here: join again with it"
            log.warning("mirror.not_allowed", node=self._identity.node, hint=hint)
        return policy

    def _desk(
        self,
        runtime: Runtime,
        registry: Registry,
        peering: Peering,
        turns: TurnSockets,
        blobs: BlobKeeper,
        *,
        rooms: Rooms,
    ) -> GatewayDesk:
        return GatewayDesk(
            runtime=runtime,
            reader=self._reader,
            lookups=self._lookups,
            home=self._home,
            turns=turns,
            gatekeeper=self._gatekeeper,
            registry=registry,
            peering=peering,
            reach=self.reach,
            local_port=self._config.local.port,
            started_at_ms=self._started_at_ms,
            engine_host=self._config.engine.host,
            clock=self._clock,
            tokens=self._tokens,
            blobs=blobs,
            activity=self._activity,
            rooms=rooms,
            revoker=Revoker(self._home, self._identity.node, runtime, self._reader, rooms),
        )

    # --- what is said in the room

    def _introduce(self, rooms: Rooms) -> None:
        """Say what the ledger and the journal know and the room may lack after a crash or a loss."""
        if self._home.admission.exists():
            try:
                rooms.say_founder(read_text(self._home.admission))
            except InvalidRecord:
                raise damaged(self._home.admission) from None
        rooms.hear(word.record for word in self._gatekeeper.revocations())
        for member in self._gatekeeper.members():
            rooms.say_member(member)
        rooms.say_agents(self._reader.agents())
        for node, head in self._reader.cursors().items():
            rooms.cursor_moved(node, head)

    async def _publish_head(self, rooms: Rooms, feed: Feed) -> None:
        said = None
        while True:
            head = feed.head
            if head != said:
                rooms.say_node(self.reach.endpoints, head, self._reader.floor())
                said = head
            rooms.say_agents(self._reader.agents())  # others may remember what a restored node has said
            await asyncio.sleep(HEAD_EVERY_S)

    def _beat(self, rooms: Rooms, registry: Registry) -> None:
        rooms.beat(registry.linked(), self.reach.endpoints)
        rooms.say_activity(self._activity.latest())


def _issuer(home: Home) -> Issuer | None:
    if not home.issuer.exists():
        return None
    return read_record(home.issuer, Issuer)


def run(home: Home, config: Config, clock: Clock, ready: Callable[[Gateway], None] = lambda _: None) -> None:
    """Run a gateway in this process until SIGINT or SIGTERM. Raises as ``Gateway`` does."""
    home.check()
    home.need_journal()
    allow_open_files()
    stop_logging = start_logging(home.log, config.log.level)
    quieten()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_main(home, config, clock, ready))
    finally:
        stop_logging()


async def _main(home: Home, config: Config, clock: Clock, ready: Callable[[Gateway], None]) -> None:
    gateway = Gateway(home, config, clock)
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await gateway.run(ready)
    except asyncio.CancelledError:
        log.info("gateway.stopped")
    except BaseExceptionGroup as group:
        failures, bugs = group.split(MeshError)
        if failures is None or bugs is not None:
            raise
        failure = first_of(failures)
        log.error("gateway.failed", code=failure.code, why=str(failure), hint=failure.hint)  # noqa: TRY400 - no bug
        if isinstance(failure, StorageFailed):
            gateway.distrust()
        raise failure from None
    finally:
        await gateway.close()
