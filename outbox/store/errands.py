"""What this node has begun and one tick could not finish."""

from typing import Protocol

from outbox.records import Errand


class ErrandStore(Protocol):
    """One errand a kind and subject."""

    def put_errand(self, row: Errand) -> None:
        """It is begun, or begun anew."""
        ...

    def drop_errand(self, row: Errand) -> None:
        """It is done; one that is not there is fine."""
        ...

    def errands(self) -> list[Errand]:
        """All of them, by kind and subject."""
        ...
