"""Errands in SQL."""

from outbox.records import Errand
from outbox.sql.rows import Asking, Writing
from outbox.tables import ERRANDS


class ErrandReads(Asking):
    """The questions of ``outbox.store.errands``."""

    def errands(self) -> list[Errand]:
        """All of them, by kind and subject."""
        return self._rows.all(ERRANDS, "ORDER BY kind, subject")


class ErrandWrites(Writing, ErrandReads):
    """What the writer adds."""

    def put_errand(self, row: Errand) -> None:
        """It is begun, or begun anew."""
        self._rows.put(ERRANDS, row)

    def drop_errand(self, row: Errand) -> None:
        """It is done."""
        self._rows.drop(ERRANDS, "WHERE kind = ? AND subject = ?", row.kind, row.subject)
