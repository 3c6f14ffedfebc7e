"""Signature checks already made, so that a record that comes again costs a hash and no curve arithmetic."""

import hashlib

from stateroom.bodies import RoomMap
from stateroom.forks import verify_fork
from stateroom.limits import VERDICTS_MAX
from stateroom.records import Record, Verify, verify_record
from stateroom.revocations import verify_revocation

_JUDGES = {RoomMap.FORKS: verify_fork, RoomMap.REVOCATIONS: verify_revocation}


class Verdicts:
    """A bounded memory of (record, key) to whether the signature holds; the oldest go first."""

    def __init__(self, verify: Verify) -> None:
        self._verify = verify
        self._known: dict[bytes, bool] = {}

    def holds(self, record: Record, public_key: bytes) -> bool:
        """Whether this key signed this record; of a fork's, whether it proves that this key wrote twice."""
        name = hashlib.sha256(public_key + record.text.encode()).digest()
        known = self._known.get(name)
        if known is None:
            judge = _JUDGES.get(record.map, verify_record)
            known = self._known[name] = judge(record, public_key, self._verify)
            if len(self._known) > VERDICTS_MAX:
                del self._known[next(iter(self._known))]
        return known
