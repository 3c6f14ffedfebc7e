"""Who is alive, from signed heartbeats that travel in awareness messages.

The state of an awareness entry is ``{"record": "<record of map presence>"}``. The node is the one that
signed the record; the client id and clock of the message count for nothing, so nobody can speak for another
or silence it. A heartbeat counts when its ``(epoch, counter)`` is higher than the last of that node, also
after that one has expired: an old heartbeat cannot be played again. A sender makes the counter from its
wall clock and never lets it fall, so that it rises over restarts. A node unheard for ``STALE_MS`` of *our*
clock is offline.

Of a node that sends them without end only so many a second are looked at: a newer one always follows, and
whoever passes one on makes the whole mesh read it.

When agents of a node were last active comes in records of map ``activity``, under the same rules.

For stock Yjs clients each node appears under a client id made from its name, with the counter as clock.
"""

import hashlib
from collections.abc import Callable, Iterable

import msgspec

from outbox.ids import AgentId, NodeId
from outbox.rates import Meter
from stateroom.bodies import ActivityBody, HeartbeatBody, RoomMap
from stateroom.errors import InvalidRecord
from stateroom.exchange import Entry
from stateroom.limits import AWARENESS_ENTRIES_MAX, HEARD_RATE, NODES_PRESENT_MAX, STALE_MS
from stateroom.picture import Seen
from stateroom.records import Record, parse_record

Judge = Callable[[str], Record | None]
"""``Index.heartbeat``: the record of a text, if an admitted node signed it about itself."""


NEVER = (-1, -1)
"""Below the epoch and counter of any heartbeat."""


class _State(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    record: str


class _Heard(msgspec.Struct, frozen=True):
    record: Record
    seen: Seen


class Presence:
    """Heartbeats by node. No clock: ``now_ms`` is an argument, from one clock of the receiver."""

    def __init__(self, judge: Judge) -> None:
        self.version = 0
        self._judge = judge
        self._heard: dict[NodeId, _Heard] = {}
        self._gone: dict[NodeId, Seen] = {}
        self._last: dict[NodeId, tuple[int, int]] = {}
        self._active: dict[NodeId, Record] = {}
        self._meters: dict[tuple[RoomMap, str], Meter] = {}
        """Of nodes that have signed something: nobody uses up what is another one's."""

    def hear(self, entries: Iterable[Entry], now_ms: int) -> tuple[Entry, ...]:
        """Take entries of an awareness message; returns those that are news, to be passed on."""
        return tuple(entry for found in entries if (entry := self._take(_text(found.state), now_ms)))

    def beat(self, text: str, now_ms: int) -> tuple[Entry, ...]:
        """Take our own heartbeat (the record's text); returns the entry to send."""
        entry = self._take(text, now_ms)
        return (entry,) if entry else ()

    def expire(self, now_ms: int) -> bool:
        """Whoever was not heard lately is offline; when it was heard is kept. True when anybody went."""
        stale = [n for n, heard in self._heard.items() if now_ms - heard.seen.last_seen_ms >= STALE_MS]
        for node in stale:
            self._gone[node] = Seen(online=False, last_seen_ms=self._heard.pop(node).seen.last_seen_ms)
        self.version += bool(stale)
        return bool(stale)

    def snapshot(self) -> tuple[Entry, ...]:
        """All entries, for a late joiner."""
        beats = [heard.record for heard in self._heard.values()]
        active = [self._active[node] for node in self._heard if node in self._active]
        return tuple(_entry(record) for record in (*beats, *active)[:AWARENESS_ENTRIES_MAX])

    def seen(self) -> dict[NodeId, Seen]:
        """Who is online, and who was since this process began; the argument of ``Index.view``."""
        return {**self._gone, **{node: heard.seen for node, heard in self._heard.items()}}

    def online(self) -> dict[NodeId, Seen]:
        """Who is online."""
        return {node: heard.seen for node, heard in self._heard.items()}

    def last_active_ms(self, node: NodeId, agent: AgentId) -> int | None:
        """When that node last heard of the agent, by the node's own clock; None when it has not said so."""
        record = self._active.get(node)
        return record.body.agents.get(agent) if record and isinstance(record.body, ActivityBody) else None

    def _take(self, text: str, now_ms: int) -> Entry | None:
        if not text or self._is_no_news(text, now_ms):
            return None
        record = self._judge(text)
        if record is not None and isinstance(record.body, ActivityBody):
            return self._take_activity(record, now_ms)
        if record is None or not isinstance(record.body, HeartbeatBody):
            return None
        node, rank = NodeId(record.key), (record.epoch, record.counter)
        if rank <= self._last.get(node, NEVER) or not self._has_room(node):
            return None
        self._note(record, now_ms)
        self._last[node] = rank
        self._gone.pop(node, None)
        body = record.body
        links = tuple(NodeId(link) for link in body.links)
        self._heard[node] = _Heard(record, Seen(True, now_ms, links, body.endpoints))
        self.version += 1
        return _entry(record)

    def _is_no_news(self, text: str, now_ms: int) -> bool:
        """Older than what was heard, or one too many: seen before its signature is looked at, which costs."""
        try:
            record = parse_record(text)
        except InvalidRecord:
            return False
        node = NodeId(record.key)
        if record.map is RoomMap.PRESENCE and (record.epoch, record.counter) <= self._last.get(node, NEVER):
            return True
        meter = self._meters.get((record.map, node))
        return meter is not None and not meter.has_some(now_ms)

    def _note(self, record: Record, now_ms: int) -> None:
        """It was news."""
        self._meters.setdefault((record.map, record.key), Meter(HEARD_RATE)).take(now_ms)

    def _take_activity(self, record: Record, now_ms: int) -> Entry | None:
        """Of a node that was heard before; it changes nothing about who is alive."""
        node = NodeId(record.key)
        known = self._active.get(node)
        rank, last = (record.epoch, record.counter), (known.epoch, known.counter) if known else (-1, -1)
        if node not in self._last or rank <= last:
            return None
        self._note(record, now_ms)
        self._active[node] = record
        return _entry(record)

    def _has_room(self, node: NodeId) -> bool:
        return node in self._last or len(self._last) < NODES_PRESENT_MAX


def client_of(node: str) -> int:
    """The awareness client id under which a node, or its agents, are shown: 32 bits of a name's SHA-256."""
    return int.from_bytes(hashlib.sha256(node.encode()).digest()[:4])


def _entry(record: Record) -> Entry:
    name = record.key if record.map is RoomMap.PRESENCE else f"{record.map}/{record.key}"
    return Entry(client_of(name), record.counter, msgspec.json.encode(_State(record.text)).decode())


def _text(state: str) -> str:
    """The record in a state; "" for ``null`` and for what stock clients say about their cursors."""
    try:
        return msgspec.json.decode(state, type=_State).record
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""
