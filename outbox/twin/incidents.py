"""Incidents and quarantined entries in memory."""

from itertools import count

from outbox.ids import NodeId, Seq
from outbox.records import Identity, Incident, Quarantined
from outbox.twin.transaction import Transaction


class TwinIncidents(Transaction):
    """``outbox.store.incidents`` in dictionaries."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._quarantined: dict[tuple[NodeId, str, Seq], Quarantined] = {}
        self._caught: dict[tuple[NodeId, str, Seq], int] = {}
        self._catches = count()
        self._incidents: dict[tuple[str, str], Incident] = {}

    def quarantine(self, row: Quarantined) -> None:
        """Keep an entry that is no valid event."""
        key = (row.source, row.epoch, row.seq)
        if key not in self._caught:
            self._set(self._caught, key, next(self._catches))
        self._set(self._quarantined, key, row)

    def quarantined(self) -> list[Quarantined]:
        """All of them, in order of arrival."""
        return [self._quarantined[key] for key in sorted(self._caught, key=self._caught.__getitem__)]

    def incident(self, kind: str, subject: str) -> Incident | None:
        """One incident, open or closed."""
        return self._incidents.get((kind, subject))

    def put_incident(self, row: Incident) -> None:
        """Insert or replace it."""
        self._set(self._incidents, (row.kind, row.subject), row)

    def incidents(self, *, open_only: bool) -> list[Incident]:
        """Incidents, oldest first."""
        found = [row for row in self._incidents.values() if row.closed_at_ms is None or not open_only]
        return sorted(found, key=lambda row: (row.opened_at_ms, row.kind, row.subject))
