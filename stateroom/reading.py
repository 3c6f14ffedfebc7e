"""Reads a room from its file, beside the gateway that keeps it or without one. Nothing is written."""

from collections.abc import Callable
from pathlib import Path

from outbox.database import Database
from stateroom.bodies import RoomMap
from stateroom.errors import InvalidUpdate
from stateroom.replica import Replica, Touched, admissions_first

_STORED = """
SELECT 0 AS seq, payload FROM snapshot WHERE room = ?1
UNION ALL SELECT seq, payload FROM log WHERE room = ?1 ORDER BY seq
"""
"""In one statement, so that no compaction comes between."""


def stored_values(
    path: Path, room: str, maps: frozenset[RoomMap], new_client_id: Callable[[], int]
) -> list[Touched]:
    """The values of a room as they were stored last, admissions first; what they are worth an index says.

    A piece that cannot be applied is left out, as the gateway does when it starts. Raises StorageFailed.
    """
    replica = Replica(maps, new_client_id)
    for payload in _payloads(path, room):
        try:
            replica.apply(payload, None)
        except InvalidUpdate:
            continue
    return admissions_first(replica.take().touched)


def _payloads(path: Path, room: str) -> list[bytes]:
    database = Database.open_read_only(path)
    try:
        return [bytes(payload) for _, payload in database.rows(_STORED, (room,))]
    finally:
        database.close()
