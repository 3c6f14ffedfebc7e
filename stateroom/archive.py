"""How one room keeps its replica in the store.

A failed write is not the end of the room: peers hold the same document. It is counted, and the next flush
writes everything as one snapshot.
"""

import asyncio
from collections import Counter

from stateroom.errors import InvalidUpdate, RoomStoreFailed
from stateroom.limits import ROOM_BYTES_MAX
from stateroom.replica import Replica, merge
from stateroom.store import RoomStore


class Archive:
    """The store as one room sees it; ``counts`` are the room's."""

    def __init__(self, room: str, store: RoomStore, counts: Counter[str]) -> None:
        self._room = room
        self._store = store
        self._counts = counts
        self._bytes = 0
        self._save_whole = False

    @property
    def is_behind(self) -> bool:
        """Whether the store lacks something that only a whole snapshot brings."""
        return self._save_whole

    def is_full(self, more: int) -> bool:
        """Whether so many bytes more would outgrow the room."""
        return self._bytes + more > ROOM_BYTES_MAX

    async def load(self, replica: Replica) -> None:
        """Apply what is stored; what cannot be applied is quarantined. Raises RoomStoreFailed."""
        for stored in await asyncio.to_thread(self._store.load, self._room):
            try:
                if not replica.apply(stored.payload, self):
                    self._counts["gap"] += 1
                self._bytes += len(stored.payload)
            except InvalidUpdate as error:
                self._counts["quarantined"] += 1
                await asyncio.to_thread(self._store.quarantine, self._room, stored, error.reason)

    def save(self, updates: list[bytes]) -> None:
        """Write updates with one commit; blocks."""
        if not updates:
            return
        merged = merge(updates)
        self._bytes += len(merged)
        try:
            self._store.append(self._room, merged)
        except RoomStoreFailed:
            self._counts["store_failed"] += 1
            self._save_whole = True

    def replace(self) -> None:
        """What is stored belongs to a document that was given up: write the new one over it."""
        self._save_whole = True
        self._bytes = 0

    async def compact_if_due(self, replica: Replica) -> None:
        """Fold log and snapshot into one snapshot when the log is long, a write failed or all is new."""
        if not self._save_whole and not self._store.wants_compaction(self._room):
            return
        snapshot, upto = replica.compacted(), self._store.last(self._room)
        try:
            await asyncio.to_thread(self._store.compact, self._room, snapshot, upto)
        except RoomStoreFailed:
            self._counts["store_failed"] += 1
            return
        self._save_whole = False
        self._bytes = len(snapshot)
