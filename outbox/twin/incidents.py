"""Incidents and quarantined entries in memory."""

from collections import Counter
from collections.abc import Collection
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
        self.open_kinds: set[str] = set()
        """Some may be open no more, or were taken back."""

    def quarantine(self, row: Quarantined) -> None:
        """Keep an entry that is no valid event."""
        key = (row.source, row.epoch, row.seq)
        if key not in self._caught:
            self._set(self._caught, key, next(self._catches))
        self._set(self._quarantined, key, row)

    def quarantined(self) -> list[Quarantined]:
        """All of them, in order of arrival."""
        return [self._quarantined[key] for key in sorted(self._caught, key=self._caught.__getitem__)]

    def count_quarantined(self) -> int:
        """How many there are."""
        return len(self._quarantined)

    def incident(self, kind: str, subject: str) -> Incident | None:
        """One incident, open or closed."""
        return self._incidents.get((kind, subject))

    def put_incident(self, row: Incident) -> None:
        """Insert or replace it."""
        if row.closed_at_ms is None:
            self.open_kinds.add(row.kind)
        self._set(self._incidents, (row.kind, row.subject), row)

    def incidents(self, *, open_only: bool) -> list[Incident]:
        """Incidents, oldest first."""
        found = [row for row in self._incidents.values() if row.closed_at_ms is None or not open_only]
        return sorted(found, key=lambda row: (row.opened_at_ms, row.kind, row.subject))

    def newest_incidents(self, limit: int, *, open_only: bool) -> list[Incident]:
        """So many of them that were opened last, oldest first."""
        found = self.incidents(open_only=open_only)
        return found[max(0, len(found) - limit) :]

    def open_incidents(self, kinds: Collection[str], before_ms: int, limit: int) -> list[Incident]:
        """Open ones of these kinds that were opened before a time, oldest first."""
        found = self.incidents(open_only=True)
        return [row for row in found if row.kind in kinds and row.opened_at_ms < before_ms][:limit]

    def count_open_incidents(self) -> dict[str, int]:
        """How many are open, by kind."""
        return dict(Counter(sorted(row.kind for row in self.incidents(open_only=True))))
