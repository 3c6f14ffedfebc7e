"""Whose admission decides whether a record counts, and which could never count.

See ``stateroom.index`` for the rules.
"""

from stateroom import ownership, revocations
from stateroom.bodies import ROOT, AdmissionBody, RoomMap
from stateroom.forks import accused
from stateroom.records import Record


def place_of(record: Record) -> tuple[str, RoomMap, str]:
    """What a record is about."""
    return (record.mesh, record.map, record.key)


def speaker(record: Record) -> str:
    """Whose admission decides whether a record counts: its signer's, or of a fork the accused's."""
    return accused(record) if record.map is RoomMap.FORKS else record.signer


def may_ever_count(record: Record) -> bool:
    """Whether some set of admissions could give this record a say."""
    match record.map:
        case RoomMap.NODES | RoomMap.CURSORS:
            return record.signer == record.key
        case RoomMap.ADMISSIONS:
            assert isinstance(record.body, AdmissionBody)
            return record.signer == ROOT or record.body.role == "member"
        case RoomMap.AGENTS:
            return ownership.may_ever_count(record)
        case RoomMap.REVOCATIONS:
            return revocations.may_ever_count(record)
        case RoomMap.FORKS:
            return True
        case RoomMap.PRESENCE | RoomMap.ACTIVITY:
            return False
