"""What an operator should see: incidents, and entries that are no events."""

from collections.abc import Collection, Set
from typing import Protocol

from outbox.records import Incident, Quarantined


class IncidentStore(Protocol):
    """One incident a kind and subject; one quarantined entry a place."""

    @property
    def open_kinds(self) -> Set[str]:
        """Kinds of which incidents may be open. No other is; most never are, and every answer asks."""
        ...

    def quarantine(self, row: Quarantined) -> None:
        """Keep an entry that is no valid event."""
        ...

    def quarantined(self) -> list[Quarantined]:
        """All of them."""
        ...

    def count_quarantined(self) -> int:
        """How many there are."""
        ...

    def incident(self, kind: str, subject: str) -> Incident | None:
        """One incident, open or closed."""
        ...

    def put_incident(self, row: Incident) -> None:
        """Insert or replace it."""
        ...

    def incidents(self, *, open_only: bool) -> list[Incident]:
        """Incidents, oldest first."""
        ...

    def newest_incidents(self, limit: int, *, open_only: bool) -> list[Incident]:
        """So many of them that were opened last, oldest first."""
        ...

    def open_incidents(self, kinds: Collection[str], before_ms: int, limit: int) -> list[Incident]:
        """Open ones of these kinds that were opened before a time, oldest first."""
        ...

    def count_open_incidents(self) -> dict[str, int]:
        """How many are open, by kind."""
        ...
