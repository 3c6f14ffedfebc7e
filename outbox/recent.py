"""Rows of one table that were written lately, as they stand in the database."""

from collections.abc import Mapping
from typing import Generic, TypeVar

from outbox.limits import RECENT_BODY_BYTES_MAX, ROWS_RECENT_MAX
from outbox.tables import Value

Row = TypeVar("Row")
_Key = tuple[Value, ...]


class RecentRows(Generic[Row]):
    """Two generations: when the young one is full it becomes the old one, and the old one is forgotten."""

    def __init__(self, rows_max: int = ROWS_RECENT_MAX) -> None:
        self._half = rows_max // 2
        self._young: dict[_Key, Row] = {}
        self._old: dict[_Key, Row] = {}

    def get(self, key: _Key) -> Row | None:
        """The row of this key, if it is remembered."""
        return self._young.get(key) or self._old.get(key)

    def keep(self, key: _Key, row: Row) -> None:
        """Remember what was written; what is large is forgotten instead."""
        if len(getattr(row, "body", b"")) > RECENT_BODY_BYTES_MAX:
            self._young.pop(key, None)
            self._old.pop(key, None)
            return
        self._young[key] = row
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}

    def keep_all(self, rows: Mapping[_Key, Row]) -> Mapping[_Key, Row]:
        """The same for several, none of which has a body; returns what is forgotten for them."""
        self._young.update(rows)
        if len(self._young) < self._half:
            return {}
        forgotten = self._old
        self._old, self._young = self._young, {}
        return forgotten

    def clear(self) -> None:
        """Forget all: what was written is not certain any more."""
        self._young.clear()
        self._old.clear()
