"""Proofs that a node has signed two histories, from the state room into the lake.

A proof names a place at which the two differ and no entry of either: it makes the incident ``fork`` where
only one history was collected, or none. It is kept with its signatures: nobody has to believe the lake.
"""

from collections.abc import Iterable
from contextlib import closing

from gateway.clock import Clock
from gateway.door import STATE_ROOM
from gateway.home import Home
from gateway.lake.lake import Lake
from gateway.rooms import STATE_MAPS, verify_raw
from outbox.forks import ForkProof
from outbox.reader import JournalReader
from stateroom.bodies import RoomMap
from stateroom.forks import fork_proof
from stateroom.index import Index
from stateroom.reading import stored_values

_JUDGED = frozenset({RoomMap.ADMISSIONS, RoomMap.FORKS})
"""What a proof stands on: itself, and whose key it is."""


def home_proofs(home: Home, clock: Clock) -> list[ForkProof]:
    """What the state room of a home proves, whether or not its gateway runs.

    Raises StorageFailed, DatabaseTooNew.
    """
    if not home.room.exists():
        return []
    with closing(JournalReader.open(home.journal)) as reader:
        mesh = reader.identity().mesh

    def new_client_id() -> int:
        return int.from_bytes(clock.entropy(4)) >> 1

    values = stored_values(home.room, STATE_ROOM, STATE_MAPS, new_client_id)
    if all(value.map != RoomMap.FORKS for value in values):
        return []  # as nearly always: then no signature has to be looked at
    index = Index(mesh, verify_raw)
    for value in values:
        if value.map in _JUDGED:
            index.offer(value.map, value.key, value.value)
    return [fork_proof(record) for record in index.records(RoomMap.FORKS)]


def keep_proofs(lake: Lake, proofs: Iterable[ForkProof]) -> list[ForkProof]:
    """Those that the lake did not have. Raises LakeBusy, StorageFailed."""
    news = [proof for proof in proofs if not lake.has_proof(proof)]
    if news:
        with lake.lock():
            for proof in news:
                lake.note_fork(proof)
    return news
