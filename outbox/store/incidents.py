"""What an operator should see: incidents, and entries that are no events."""

from typing import Protocol

from outbox.records import Incident, Quarantined


class IncidentStore(Protocol):
    """One incident a kind and subject; one quarantined entry a place."""

    def quarantine(self, row: Quarantined) -> None:
        """Keep an entry that is no valid event."""
        ...

    def quarantined(self) -> list[Quarantined]:
        """All of them."""
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
