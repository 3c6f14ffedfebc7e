"""One Yjs document of flat maps, and what happened to it since somebody last asked.

The document lives on one thread. Observers only copy: the work is done after the transaction, by ``take``.
The client id is new at each start: an id whose tail was lost with the disk would write the same clocks
twice, and replicas would differ for ever with equal state vectors.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec
from pycrdt import Doc, Map, MapEvent, Subscription, TransactionEvent, merge_updates

from stateroom import preflight
from stateroom.bodies import RoomMap
from stateroom.errors import InvalidUpdate
from stateroom.limits import STUCK_BYTES_MAX
from stateroom.preflight import Survey

Origin = object
"""Whoever caused a change: a link, or None for this node. Compared by identity."""


class Touched(msgspec.Struct, frozen=True):
    """A key whose value was set or deleted."""

    map: str
    key: str
    value: object
    """The new value, None when it was deleted."""


class Happened(msgspec.Struct, frozen=True):
    """What one call of ``take`` hands over."""

    updates: list[tuple[Origin, bytes]]
    touched: list[Touched]


class Replica:
    """A document with the given root maps."""

    def __init__(self, roots: Iterable[str], new_client_id: Callable[[], int]) -> None:
        self.roots = frozenset(roots)
        self._new_client_id = new_client_id
        self._updates: list[tuple[Origin, bytes]] = []
        self._touched: list[Touched] = []
        self._origin: Origin = None
        self._attach()

    @property
    def client_id(self) -> int:
        """The id under which this node writes."""
        return self._doc.client_id

    def put(self, room_map: str, key: str, value: str) -> None:
        """Set one key, in its own transaction: two keys in one leave tombstones that never merge."""
        before = len(self._updates)
        self._maps[room_map][key] = value
        self._know(self._ends_since(before))

    def get(self, room_map: str, key: str) -> object:
        """The raw value of a key, for comparing; whether it counts, only the index knows."""
        return self._maps[room_map].get(key)

    def apply(self, update: bytes, origin: Origin, surveyed: Survey | None = None) -> bool:
        """Check and apply a foreign update. Raises InvalidUpdate; then nothing of it stays, or little.

        Returns False, and nothing was done, when it builds on what is not here: a peer that is asked brings
        both. When the update moves the clock of our own client id, somebody forged it: ``renew`` comes first.
        """
        survey = surveyed or preflight.survey(update, self.roots)
        end = survey.ends.get(self.client_id)
        if end is not None and end > self._clocks.get(self.client_id, 0):
            self.renew()
        if not survey.follows(self._clocks):
            return False
        before = len(self._updates)
        self._origin = origin
        try:
            _guarded(lambda: self._doc.apply_update(update))
        finally:
            self._origin = None
        self._check_taken(survey.ends, update, before)
        return True

    def _check_taken(self, ends: Mapping[int, int], update: bytes, before: int) -> None:
        """Raises InvalidUpdate when parts of an update wait for each other: then they wait for ever."""
        news = {client: end for client, end in ends.items() if end > self._clocks.get(client, 0)}
        whole = sum(len(came) for _, came in self._updates[before:]) >= len(update)
        self._know(news if whole else self._ends_since(before))
        if all(end <= self._clocks.get(client, 0) for client, end in news.items()):
            return
        self._stuck_bytes += len(update)
        if self._stuck_bytes > STUCK_BYTES_MAX:
            self.renew()
        raise InvalidUpdate("circle")

    def _ends_since(self, before: int) -> dict[int, int]:
        ends: dict[int, int] = {}
        for _, update in self._updates[before:]:
            ends.update(preflight.survey(update, self.roots).ends)
        return ends

    def _know(self, ends: Mapping[int, int]) -> None:
        for client, end in ends.items():
            self._clocks[client] = max(end, self._clocks.get(client, 0))

    def renew(self) -> None:
        """Go on in an empty document under a new client id.

        Nothing of the old one may stay: what we wrote at a forged clock means something else elsewhere, and
        new values that follow it would land in the forger's key. The peers fill the document again.
        """
        for subscription in self._subscriptions:
            self._doc.unobserve(subscription)
        self._attach()

    def state(self) -> bytes:
        """The state vector."""
        return self._doc.get_state()

    def lacking(self, state: bytes, *, checked: bool = False) -> bytes:
        """What a peer with this state vector lacks. Raises InvalidUpdate."""
        if not checked:
            preflight.clocks(state)
        return _guarded(lambda: self._doc.get_update(state))

    def encode(self) -> bytes:
        """The whole document as one update."""
        return self._doc.get_update()

    def compacted(self) -> bytes:
        """The same through a fresh document, which merges more than the living one does."""
        fresh: Doc[Map[object]] = Doc()
        fresh.apply_update(self.encode())
        return fresh.get_update()

    def take(self) -> Happened:
        """All changes since the last call."""
        happened = Happened(self._updates, self._touched)
        self._updates, self._touched = [], []
        return happened

    def _attach(self) -> None:
        self._doc: Doc[Map[object]] = Doc(client_id=self._new_client_id())
        self._clocks: dict[int, int] = {}
        """The state vector, followed: reading it takes as long as there were ever clients."""
        self._stuck_bytes = 0
        """Of updates that wait in the document for what never comes."""
        self._maps = {name: self._doc.get(name, type=Map) for name in self.roots}
        self._subscriptions: list[Subscription] = [self._doc.observe(self._on_update)]
        for name, room_map in self._maps.items():
            room_map.observe(self._map_observer(name))

    def _on_update(self, event: TransactionEvent) -> None:
        self._updates.append((self._origin, event.update))

    def _map_observer(self, name: str) -> Callable[[MapEvent], None]:
        def on_change(event: MapEvent) -> None:
            keys: dict[str, dict[str, object]] = event.keys  # type: ignore[attr-defined]  # bare slots
            self._touched.extend(Touched(name, key, delta.get("newValue")) for key, delta in keys.items())

        return on_change


def admissions_first(touched: list[Touched]) -> list[Touched]:
    """So that few records have to wait for the key that proves them; order within a map stays."""
    return sorted(touched, key=lambda touch: touch.map != RoomMap.ADMISSIONS)


def merge(updates: list[bytes]) -> bytes:
    """One update that does what all of these do."""
    return updates[0] if len(updates) == 1 else merge_updates(*updates)


def _guarded(call: Callable[[], bytes | None]) -> bytes:
    """Run native code on foreign bytes; its errors, and its panics, become InvalidUpdate."""
    try:
        return call() or b""
    except (ValueError, RuntimeError, TypeError) as error:
        raise InvalidUpdate("not_applicable") from error
    except BaseException as error:
        # A Rust panic is a BaseException of a class that cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        raise InvalidUpdate("panic") from error
