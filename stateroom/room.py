"""A room: one replica, its store, and any number of peers that hold the same document.

``serve`` treats accepted and dialled connections alike. An incoming update goes through size limit,
pre-flight, apply, store and only then to the other peers; what arrives within one window is merged, written
with one commit and encoded once for all peers, leaving out what a peer itself has sent. An update that
changes nothing is not passed on, so any connected shape of nodes settles.

A room never trusts its document: values count only in the index. When a value that counts was overwritten by
something lesser, the room puts it back: its own at once, those of others after a while and so many at a time.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable

from outbox.groups import first_of
from stateroom.archive import Archive
from stateroom.bodies import RoomMap
from stateroom.errors import InvalidMessage, InvalidUpdate, RoomFull
from stateroom.exchange import (
    Awareness,
    Entry,
    Message,
    QueryAwareness,
    SyncStep1,
    SyncStep2,
    Update,
    decode,
    encode,
)
from stateroom.index import Index
from stateroom.limits import BATCH_BYTES_MAX, LONG_UPDATE_BYTES, READ_SLICE
from stateroom.outflow import GONE, LOST, STOPPING, Closed, Outflow, Recv, Send
from stateroom.pace import Pace
from stateroom.peers import Peer, Peers
from stateroom.preflight import Survey, clocks, survey
from stateroom.presence import Presence
from stateroom.repairs import Repairs
from stateroom.replica import Origin, Replica, Touched, admissions_first
from stateroom.store import RoomStore
from stateroom.tempo import weight


class _Ended(Exception):
    """Leaves the task group of a connection."""

    def __init__(self, closed: Closed) -> None:
        super().__init__(closed.reason)
        self.closed = closed


class Room:
    """Call ``load`` once, keep ``run`` running, and ``serve`` each connection. All on one event loop."""

    def __init__(
        self,
        name: str,
        maps: frozenset[RoomMap],
        store: RoomStore,
        index: Index,
        *,
        now_ms: Callable[[], int],
        new_client_id: Callable[[], int],
        on_change: Callable[[], None],
        presence: Presence | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.name = name
        self.counts: Counter[str] = Counter()
        """What went wrong, by reason: refused messages and updates, repairs, closed peers, store failures."""
        self._archive = Archive(name, store, self.counts)
        self._index = index
        self._now_ms = now_ms
        self._on_change = on_change
        self._presence = presence
        self._pace = pace or Pace()
        self._replica = Replica(maps, new_client_id)
        self._peers = Peers()
        self._repairs = Repairs(index)
        self._batch: list[tuple[Origin, bytes]] = []
        self._dirty = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._changed = False
        self._batch_bytes = 0
        self._unread: deque[Touched] = deque()
        self._stopping = False
        self._surveying = asyncio.Lock()

    @property
    def peers(self) -> list[str]:
        """Names of the connected peers."""
        return self._peers.names

    @property
    def client_id(self) -> int:
        """The Yjs client id of this start."""
        return self._replica.client_id

    async def load(self) -> None:
        """Fill the room from the store. Raises RoomStoreFailed."""
        await self._archive.load(self._replica)
        self._unread.extend(admissions_first(self._replica.take().touched))
        await self._read_all()
        self._report()

    def put(self, room_map: RoomMap, key: str, record: str) -> None:
        """Write one of our own records. It is stored and sent within a window."""
        self._repairs.own((room_map.value, key))
        self._replica.put(room_map.value, key, record)
        self._digest()

    def beat(self, record: str) -> None:
        """Send our heartbeat: a record of map ``presence``."""
        if self._presence is not None:
            self._heard(self._presence.beat(record, self._now_ms()), None)

    def end(self, peer: str, closed: Closed) -> None:
        """Close whatever is open with a peer."""
        self._peers.end(closed, peer)

    async def settled(self) -> None:
        """Wait until everything written or received so far is stored and queued for the peers."""
        await self._settled.wait()

    def renew(self) -> None:
        """Begin an empty document under a new client id: for when index digests differ lastingly."""
        self._replica.renew()
        self._refill()

    async def run(self) -> None:
        """Store, send and repair until cancelled; what is pending then is stored before it returns."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._flush_for_ever())
                tasks.create_task(self._tick_for_ever())
        finally:
            self._stopping = True
            self._peers.end(STOPPING)
            self._archive.save([update for _, update in self._batch])

    async def serve(self, send: Send, recv: Recv, *, peer: str, read_only: bool = False) -> Closed:
        """Keep one connection in step until it ends; the caller closes the socket with what is returned.

        ``read_only``: only SyncStep1 and awareness queries are heard.
        """
        if self._stopping:
            return STOPPING
        link = Peer(peer, Outflow(bytes_max=self._pace.send_queue_bytes), read_only=read_only)
        self._peers.add(link)
        self._greet(link)
        closed = GONE
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pump(link, send))
                tasks.create_task(self._listen(link, recv))
        except* _Ended as group:
            closed = first_of(group).closed
        finally:
            self._peers.discard(link)
        if closed not in (GONE, STOPPING):
            self.counts[closed.reason] += 1
        return closed

    # --- one connection

    def _greet(self, link: Peer) -> None:
        if not link.read_only:
            link.outflow.offer(encode(SyncStep1(self._replica.state())))
        if self._presence is not None:
            link.outflow.offer(encode(Awareness(self._presence.snapshot())))

    async def _pump(self, link: Peer, send: Send) -> None:
        raise _Ended(await link.outflow.pump(send, self._pace.send_timeout_s))

    async def _listen(self, link: Peer, recv: Recv) -> None:
        while True:
            try:
                frame = await recv()
            except ConnectionError:
                raise _Ended(LOST) from None
            if frame is None:
                raise _Ended(GONE)
            message = await self._hear(link, frame)
            wait_ms = link.meters.take(message, self._now_ms(), weight(message))
            await self._breathe(wait_ms / 1000)

    async def _hear(self, link: Peer, frame: bytes) -> Message:
        try:
            message = decode(frame)
            self._handle(link, message, await self._surveyed(message))
        except (InvalidMessage, InvalidUpdate) as error:
            self.counts[error.reason] += 1
            raise _Ended(Closed(1008, f"{error.code}: {error.reason}")) from None
        except RoomFull as error:
            raise _Ended(Closed(1008, error.code)) from None
        return message

    async def _surveyed(self, message: Message) -> Survey | None:
        """What a long update brings: others may run meanwhile, and no second one is looked at."""
        match message:
            case SyncStep2(update) | Update(update) if len(update) > LONG_UPDATE_BYTES:
                self._need_room(update)
                async with self._surveying:
                    return await asyncio.to_thread(survey, update, self._replica.roots)
            case SyncStep1(state) if len(state) > LONG_UPDATE_BYTES:
                async with self._surveying:
                    await asyncio.to_thread(clocks, state)
        return None

    async def _breathe(self, wait_s: float) -> None:
        """Let others run; while the store is behind, wait for it instead of gathering more."""
        await asyncio.sleep(wait_s)
        if self._batch_bytes > BATCH_BYTES_MAX or len(self._unread) > READ_SLICE:
            await self._settled.wait()

    def _handle(self, link: Peer, message: Message, surveyed: Survey | None) -> None:
        match message:
            case SyncStep1(state):
                checked = len(state) > LONG_UPDATE_BYTES
                link.outflow.offer(encode(SyncStep2(self._replica.lacking(state, checked=checked))))
                link.synced = True
            case QueryAwareness():
                entries = self._presence.snapshot() if self._presence else ()
                link.outflow.offer(encode(Awareness(entries)))
            case _ if link.read_only:
                self.counts["read_only"] += 1
            case SyncStep2(update) | Update(update):
                self._accept(link, update, surveyed)
            case Awareness(entries):
                if self._presence is not None:
                    self._heard(self._presence.hear(entries, self._now_ms()), link)

    def _need_room(self, update: bytes) -> None:
        if self._archive.is_full(len(update)):
            self.counts["room_full"] += 1
            raise RoomFull(f"room {self.name} is full")

    def _accept(self, link: Peer, update: bytes, surveyed: Survey | None) -> None:
        self._need_room(update)
        client_id = self._replica.client_id
        try:
            if not self._replica.apply(update, link, surveyed):
                self.counts["gap"] += 1  # the next SyncStep2 brings it with what it builds on
        finally:
            if self._replica.client_id != client_id:
                self.counts["client_id_forged"] += 1
                self._refill()
            self._digest()

    # --- what a change leads to

    def _digest(self) -> None:
        """Show new values to the index, and queue new updates for store and peers."""
        happened = self._replica.take()
        self._unread.extend(admissions_first(happened.touched))
        if len(self._unread) <= READ_SLICE:
            self._read_slice()
        self._batch.extend(happened.updates)
        self._batch_bytes += sum(len(update) for _, update in happened.updates)
        if self._batch or self._changed or self._unread:
            self._settled.clear()
            self._dirty.set()

    async def _read_all(self) -> None:
        """Signatures take their time: after each slice of them others may run."""
        while self._unread:
            self._read_slice()
            await asyncio.sleep(0)

    def _read_slice(self) -> None:
        for _ in range(min(READ_SLICE, len(self._unread))):
            touch = self._unread.popleft()
            change = self._index.offer(touch.map, touch.key, touch.value) if touch.value is not None else None
            self._changed |= change is not None
            self._repairs.watch(self._replica, [(touch.map, touch.key), *(change.keys if change else ())])

    def _repair(self, put_back: Callable[[Replica], int]) -> None:
        self.counts["put_back"] += put_back(self._replica)
        self._digest()

    def _refill(self) -> None:
        """The document is a new one: peers fill it, and what counts and does not come is put back."""
        self._archive.replace()
        self._peers.ask(self._replica.state())
        self._repairs.watch_all(self._replica)
        self._dirty.set()

    def _report(self) -> None:
        if self._changed:
            self._changed = False
            self._on_change()

    def _heard(self, entries: tuple[Entry, ...], origin: Peer | None) -> None:
        """Pass on heartbeats that are news."""
        if entries:
            self._changed = True
            self._peers.tell(entries, origin)
            self._digest()

    # --- in the background

    async def _flush_for_ever(self) -> None:
        while True:
            await self._dirty.wait()
            await asyncio.sleep(self._pace.window_s)
            await self._read_all()
            self._repair(self._repairs.repair_own)
            self._dirty.clear()
            await self._flush()
            if not self._dirty.is_set():
                self._settled.set()

    async def _flush(self) -> None:
        if batch := list(self._batch):
            await asyncio.to_thread(self._archive.save, [update for _, update in batch])
            del self._batch[: len(batch)]
            self._batch_bytes -= sum(len(update) for _, update in batch)
            self._peers.fan_out(batch)
        self._report()
        await self._archive.compact_if_due(self._replica)

    async def _tick_for_ever(self) -> None:
        spoke = asked = self._now_ms()
        while True:
            await asyncio.sleep(self._pace.tick_s)
            now = self._now_ms()
            if self._presence is not None and self._presence.expire(now):
                self._changed = True
            self._repair(self._repairs.repair_some)
            if self._archive.is_behind:
                self._dirty.set()
            if now - spoke >= self._pace.keepalive_s * 1000:
                spoke = now
                self._peers.tell(())
            if now - asked >= self._pace.resync_s * 1000:
                asked = now
                self._peers.ask(self._replica.state())
                self._repairs.watch_all(self._replica)
