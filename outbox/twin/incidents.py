"""Incidents and quarantined entries in memory."""

from outbox.ids import NodeId, Seq
from outbox.records import Identity, Incident, Quarantined
from outbox.twin.transaction import Transaction


class TwinIncidents(Transaction):
    """``outbox.store.incidents`` in dictionaries."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._quarantined: dict[tuple[NodeId, str, Seq], Quarantined] = {}
        self._incidents: dict[tuple[str, str], Incident] = {}

    def quarantine(self, row: Quarantined) -> None:
        """Keep an entry that is no valid event."""
        self._set(self._quarantined, (row.source, row.epoch, row.seq), row)

    def quarantined(self) -> list[Quarantined]:
        """All of them, in order of arrival."""
        return list(self._quarantined.values())

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
