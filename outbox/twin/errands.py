"""Errands in memory."""

from outbox.records import Errand, Identity
from outbox.twin.transaction import Transaction


class TwinErrands(Transaction):
    """``outbox.store.errands`` in a dictionary."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._errands: dict[tuple[str, str], Errand] = {}

    def put_errand(self, row: Errand) -> None:
        """It is begun, or begun anew."""
        self._set(self._errands, (row.kind, row.subject), row)

    def drop_errand(self, row: Errand) -> None:
        """It is done."""
        self._drop(self._errands, (row.kind, row.subject))

    def errands(self) -> list[Errand]:
        """All of them, by kind and subject."""
        return [row for _, row in sorted(self._errands.items())]
