"""A transaction over dictionaries: each write remembers how to take itself back.

Every answer is sorted or in an order of its own: taking back a removal puts a row last.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from outbox.errors import StorageFailed
from outbox.records import Identity

_Key = TypeVar("_Key")
_Row = TypeVar("_Row")


class Transaction:
    """The undo log that all parts of the twin share."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._undo: list[Callable[[], object]] | None = None
        self.read_only = False

    def identity(self) -> Identity:
        """Mesh, node and current epoch."""
        return self._identity

    def begin(self) -> None:
        """Open the tick's transaction."""
        if self._undo is not None:
            raise StorageFailed("a transaction is open already")
        self._undo = []

    def commit(self) -> None:
        """Keep what was written."""
        self._log()
        self._undo = None

    def find_room(self) -> None:
        """There is always some in memory."""
        self.read_only = False

    @property
    def only_asked(self) -> bool:
        """Whether the open transaction has changed nothing."""
        return not self._undo

    def rollback(self) -> None:
        """Take back the open transaction, last write first."""
        for take_back in reversed(self._undo or []):
            take_back()
        self._undo = None

    def _log(self) -> list[Callable[[], object]]:
        if self._undo is None:
            raise StorageFailed("a write outside a transaction")
        return self._undo

    def _set(self, rows: dict[_Key, _Row], key: _Key, row: _Row) -> None:
        if key in rows:
            self._log().append(partial(rows.__setitem__, key, rows[key]))
        else:
            self._log().append(partial(rows.__delitem__, key))
        rows[key] = row

    def _set_if(self, wanted: bool, rows: dict[_Key, _Row], key: _Key, row: _Row) -> None:  # noqa: FBT001
        if wanted:
            self._set(rows, key, row)
        else:
            self._drop(rows, key)

    def _drop(self, rows: dict[_Key, _Row], key: _Key) -> None:
        log = self._log()
        if key in rows:
            log.append(partial(rows.__setitem__, key, rows.pop(key)))


def counts(states: Iterable[str]) -> dict[str, int]:
    """How often each one occurs."""
    found: dict[str, int] = {}
    for state in states:
        found[state] = found.get(state, 0) + 1
    return found
