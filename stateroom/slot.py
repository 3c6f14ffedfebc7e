"""All that is kept of one key of one map: the records that may still matter, and the one that counts."""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from stateroom.bodies import RoomMap
from stateroom.ownership import Ownership, agent_body
from stateroom.records import Record

SlotKey = tuple[RoomMap, str]
_OWN_WORDS = frozenset({RoomMap.NODES, RoomMap.CURSORS})
"""What a node says of itself; it decides about nothing else."""


_KEPT = frozenset({RoomMap.FORKS, RoomMap.REVOCATIONS})


class Change(msgspec.Struct, frozen=True):
    """An offered record changed what readers see."""

    keys: tuple[SlotKey, ...]
    """Every key whose shown record is another one now; an admission may bring many to light."""


class Slot:
    """Mutable; owned by the index."""

    __slots__ = ("best", "candidates", "ownership")

    def __init__(self) -> None:
        self.candidates: dict[str, Record] = {}
        """By text."""
        self.best: Record | None = None
        self.ownership: Ownership | None = None
        """For agents: how ``best`` came to count."""

    def goes_on(self, record: Record) -> bool:
        """Whether a record says more of what only its signer can say, and the last word is all there is."""
        last = self.best
        if last is None or len(self.candidates) > 1 or record.map not in _OWN_WORDS:
            return False
        return record.signer == last.signer and record.rank > last.rank

    def go_on(self, record: Record) -> None:
        """Its signature holds: it counts in place of the last one, as choosing between the two would have."""
        self.candidates = {record.text: record}
        self.best = record


def digest_of(slots: Mapping[SlotKey, Slot]) -> str:
    """Hex SHA-256 over all that counts."""
    lines = sorted(
        f"{room_map} {key} {slot.best.text}\n" for (room_map, key), slot in slots.items() if slot.best
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def dominated(valid: Sequence[Record]) -> list[Record]:
    """Of records whose signatures hold: those that a higher one of equal standing makes useless for ever."""
    if len(valid) < 2:
        return []
    top: dict[tuple[str, str, int], Record] = {}
    for record in valid:
        other = top.setdefault(_standing(record), record)
        if record.rank > other.rank:
            top[_standing(record)] = record
    return [record for record in valid if top[_standing(record)] is not record]


def _standing(record: Record) -> tuple[str, str, int]:
    if record.map in _KEPT:
        return (
            record.text,
            "",
            0,
        )  # none makes another one useless: proofs, and words that nobody takes back
    if record.map is RoomMap.AGENTS:
        body = agent_body(record)
        return (record.signer, body.owner, body.owner_epoch)
    return (record.signer, "", 0)
