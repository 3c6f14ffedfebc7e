"""Incidents and quarantined entries in SQL."""

from collections.abc import Collection

from outbox.records import Incident, Quarantined
from outbox.sql.rows import Asking, Writing
from outbox.tables import INCIDENTS, QUARANTINED


class IncidentReads(Asking):
    """The questions of ``outbox.store.incidents``."""

    def quarantined(self) -> list[Quarantined]:
        """Entries that are no valid events, in order of arrival."""
        return self._rows.all(QUARANTINED, "ORDER BY arrival")

    def count_quarantined(self) -> int:
        """How many there are."""
        return int(self._rows.database.rows("SELECT COUNT(*) FROM quarantined")[0][0])

    def incident(self, kind: str, subject: str) -> Incident | None:
        """One incident, open or closed."""
        return self._rows.find(INCIDENTS, kind, subject)

    def incidents(self, *, open_only: bool) -> list[Incident]:
        """Incidents, oldest first."""
        which = "WHERE closed_at_ms IS NULL " if open_only else ""
        return self._rows.all(INCIDENTS, f"{which}ORDER BY opened_at_ms, kind, subject")

    def newest_incidents(self, limit: int, *, open_only: bool) -> list[Incident]:
        """So many of them that were opened last, oldest first."""
        which = "WHERE closed_at_ms IS NULL " if open_only else ""
        order = "ORDER BY opened_at_ms DESC, kind DESC, subject DESC LIMIT ?"
        return self._rows.all(INCIDENTS, which + order, limit)[::-1]

    def open_incidents(self, kinds: Collection[str], before_ms: int, limit: int) -> list[Incident]:
        """Open ones of these kinds that were opened before a time, oldest first."""
        marks = ", ".join("?" * len(kinds))
        which = f"WHERE closed_at_ms IS NULL AND opened_at_ms < ? AND kind IN ({marks})"
        order = "ORDER BY opened_at_ms, kind, subject LIMIT ?"
        return self._rows.all(INCIDENTS, f"{which} {order}", before_ms, *kinds, limit)

    def count_open_incidents(self) -> dict[str, int]:
        """How many are open, by kind."""
        return dict(
            self._rows.database.rows(
                "SELECT kind, COUNT(*) FROM incidents WHERE closed_at_ms IS NULL GROUP BY kind ORDER BY kind"
            )
        )


class IncidentWrites(Writing, IncidentReads):
    """What the writer adds."""

    open_kinds: set[str]
    """Some may be open no more, or were taken back."""

    def quarantine(self, row: Quarantined) -> None:
        """Keep an entry that is no valid event."""
        self._rows.put(QUARANTINED, row)

    def put_incident(self, row: Incident) -> None:
        """Insert or replace it."""
        self._rows.put(INCIDENTS, row)
        if row.closed_at_ms is None:
            self.open_kinds.add(row.kind)
