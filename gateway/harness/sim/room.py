"""The state room of one simulated node: the real index and the real statements, gossip in place of Yjs.

A frame is a list of ``[map, key, text]``. A connection begins with all records of both sides; afterwards what
is news of one window is shown and passed on together. What a node held survives its process, as ``room.db``
does.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import msgspec

from auth.keys import SigningKey
from gateway.beats import BeatCounter
from gateway.door import CURSORS_ROOM, STATE_ROOM
from gateway.harness.sim.clocks import SimClock
from gateway.harness.sim.signing import Keys
from gateway.limits import CURSORS_EVERY_S
from gateway.rooms import STATE_MAPS, Rooms
from outbox.ids import NodeId
from outbox.records import Identity
from stateroom.bodies import RoomMap
from stateroom.index import Index
from stateroom.outflow import GONE, LOST, Closed, Recv, Send
from stateroom.presence import Presence
from stateroom.records import Record, parse_record
from stateroom.room import Room
from stateroom.view import View

Stored = dict[tuple[str, str], str]
"""The newest record of each key, as the room's database keeps it."""

_Said = list[tuple[str, str, str]]
_STATE_WINDOW_S = 0.05
_BEAT_S = 12.0
"""As rarely as a node can say that it is alive and be believed after one lost heartbeat."""
_decode = msgspec.json.Decoder(_Said).decode

CURSORS_MAPS = frozenset({RoomMap.CURSORS})


class SimRoom:
    """One document: keys and texts that travel."""

    def __init__(
        self,
        maps: frozenset[RoomMap],
        index: Index,
        stored: Stored,
        changed: Callable[[], None],
        window_s: float,
    ) -> None:
        self._maps = maps
        self._window_s = window_s
        self._gathering = False
        self._index = index
        self._stored = stored
        self._changed = changed
        self.hear: Callable[[str, str], bool] = lambda _node, _record: False
        """Whether a heartbeat is news."""
        self._beats: dict[str, str] = {}
        """The last heartbeat of each node."""
        self._peers: dict[int, tuple[Stored, asyncio.Event]] = {}
        self._served: dict[int, tuple[str, tuple[asyncio.Task[None], ...]]] = {}
        self._last_peer = 0

    def load(self) -> None:
        """Show the index what the database holds."""
        for (room_map, key), text in self._stored.items():
            if room_map in self._maps:
                self._index.offer(room_map, key, text)

    def put(self, room_map: RoomMap, key: str, text: str) -> None:
        """Say something."""
        self._take(room_map, key, text, None)

    def end(self, peer: str, closed: Closed) -> None:
        """Close whatever is open with a peer."""
        for name, tasks in self._served.values():
            for task in tasks if name == peer else ():
                task.cancel(closed.reason)

    def beat(self, record: str) -> None:
        """This node is alive."""
        self._heard(parse_record(record).key, record, None)

    def _heard(self, key: str, text: str, source: int | None) -> None:
        if self._beats.get(key) == text or not self.hear(key, text):
            return
        self._beats[key] = text
        self._tell(RoomMap.PRESENCE, key, text, source)

    async def serve(self, send: Send, recv: Recv, *, peer: str) -> Closed:
        """Talk to one peer until it goes."""
        self._last_peer += 1
        number = self._last_peer
        wanted: Stored = {key: text for key, text in self._stored.items() if key[0] in self._maps}
        stirred = asyncio.Event()
        stirred.set()
        self._peers[number] = (wanted, stirred)
        try:
            async with asyncio.TaskGroup() as tasks:
                talking = tasks.create_task(_talk(wanted, stirred, send))
                self._served[number] = peer, (talking, tasks.create_task(self._listen(number, recv)))
        except* (ConnectionError, _PeerLeft):
            pass
        finally:
            del self._peers[number], self._served[number]
        return LOST

    async def _listen(self, number: int, recv: Recv) -> None:
        while (frame := await recv()) is not None:
            for room_map, key, text in _decode(frame):
                self._take(room_map, key, text, number)
        raise _PeerLeft(GONE.reason)

    def _take(self, room_map: str, key: str, text: str, source: int | None) -> None:
        if room_map == RoomMap.PRESENCE:
            self._heard(key, text, source)
            return
        peer = self._peers.get(source or 0)
        if peer is not None and peer[0].get((room_map, key)) == text:
            del peer[0][room_map, key]  # it told us first: the two need not cross
        if self._stored.get((room_map, key)) == text or self._index.offer(room_map, key, text) is None:
            return
        best = self._index.record(RoomMap(room_map), key)
        assert best is not None, "an offer that changes a key leaves a record there"
        self._stored[room_map, key] = best.text
        self._tell(room_map, key, best.text, source if best.text == text else None)

    def _tell(self, room_map: str, key: str, text: str, source: int | None) -> None:
        """Pass on what is news, but to whom it came from, together with what else comes soon."""
        for number, (wanted, _) in self._peers.items():
            if number != source:
                wanted[room_map, key] = text
        if not self._gathering:
            self._gathering = True
            asyncio.get_running_loop().call_later(self._window_s, self._flush)

    def _flush(self) -> None:
        self._gathering = False
        self._changed()
        for wanted, stirred in self._peers.values():
            if wanted:
                stirred.set()


class _PeerLeft(ConnectionError):
    pass


async def _talk(wanted: Stored, stirred: asyncio.Event, send: Send) -> None:
    while True:
        await stirred.wait()
        stirred.clear()
        said: _Said = [(*name, text) for name, text in wanted.items()]
        wanted.clear()
        if said:
            await send(msgspec.json.encode(said))


class SharedIndex(Index):
    """The nodes of a world parse and judge each record once between them: a record never changes."""

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys.mesh, keys.verify_raw)
        self._verdicts = keys.verdicts
        self._parsed = keys.parsed

    def _parse(self, room_map: str, key: str, value: object) -> Record:
        name = (room_map, key, value)
        record = self._parsed.get(name)
        if record is None:
            record = self._parsed[name] = super()._parse(room_map, key, value)
        return record


class SimRooms(Rooms):
    """What a gateway says in its rooms and reads there, without Yjs and without a database file."""

    def __init__(self, identity: Identity, keys: Keys, clock: SimClock, stored: Stored) -> None:
        # The documents are other ones; all that is said and read about them is the gateway's own.
        self._identity = identity
        self._key = cast("SigningKey", keys.key(identity.node))
        self._clock = clock
        self._watchers = []
        self._index = SharedIndex(keys)
        self._presence = Presence(self._index.heartbeat)
        self.beats = BeatCounter(None)
        self._shown = ()
        self._cursors = {}
        self._said = None
        self._cursors_changed = asyncio.Event()
        self.known_ms: dict[str, int] = {}
        """When a heartbeat of each node came that the engine knows of, by the clock of this process."""
        self._heard_ms: dict[str, int] = {}
        self._made: deque[tuple[View, dict[str, int]]] = deque()
        """Views that the engine has yet to see but for the first, and what had been heard by then."""
        state = SimRoom(STATE_MAPS, self._index, stored, self._changed, _STATE_WINDOW_S)
        state.hear = self._hear
        cursors = SimRoom(CURSORS_MAPS, self._index, stored, self._changed, CURSORS_EVERY_S)
        self.state, self.cursors = cast("Room", state), cast("Room", cursors)
        state.load()
        cursors.load()

    def digest(self) -> str:
        """Of everything shown: equal digests mean equal content."""
        return self._index.digest()

    def _hear(self, node: str, text: str) -> bool:
        now_ms = self._clock.mono_ms()
        if not self._presence.beat(text, now_ms):
            return False
        self._heard_ms[node] = now_ms
        if self._made and all(view.online(NodeId(node)) for view, _ in self._made):
            self.known_ms[node] = now_ms  # it is as the engine thinks: there is no news
        return True

    def made(self, view: View) -> None:
        """The engine will be told of this view."""
        self._made.append((view, dict(self._heard_ms)))

    def told(self, view: View) -> None:
        """The engine has taken note of this view."""
        place = next((place for place, (made, _) in enumerate(self._made) if made is view), None)
        if place is None:
            return  # the first one
        for _ in range(place):
            self._made.popleft()
        heard_ms = self._made[0][1]
        self.known_ms |= {node: at for node, at in heard_ms.items() if view.online(NodeId(node))}

    async def keep_beating(self) -> None:
        """Say that this node is alive, and see who is, until cancelled."""
        while True:
            self._presence.expire(self._clock.mono_ms())
            self.beat((), ())
            self._changed()
            await asyncio.sleep(_BEAT_S)

    async def publish_cursors(self, head: Callable[[], Any]) -> None:
        """Say how far others were read, until cancelled."""
        await self._publish_cursors(head)

    def channel(self, name: str) -> Room | None:
        """The document behind a channel; None for the link's."""
        return {STATE_ROOM: self.state, CURSORS_ROOM: self.cursors}.get(name)
