"""How records become rows: one description a table, and the SQL that follows from it.

Columns are named after the record's fields, in their order. Only event ids change their form at rest.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from outbox.chain import Checkpoint, Head
from outbox.errors import StorageFailed
from outbox.ids import Epoch, EventId, MeshId, NodeId, Seq, event_id_bytes, event_id_from_bytes
from outbox.records import (
    Blob,
    Copy,
    Delivery,
    Doubt,
    EpochRow,
    Errand,
    Incident,
    LedgerFloor,
    LocalAgent,
    Quarantined,
    Reader,
    Received,
    Record,
    Remembered,
)

Value = int | str | bytes | None
Values = tuple[Any, ...]
"""One row as the database gives it; ``Table.decode`` checks the types."""

Row = TypeVar("Row", bound=Record)

ROWS_PER_STATEMENT = (256, 64, 16, 4, 2, 1)
"""Sizes of multi-row statements: few enough to stay prepared, large enough that a batch is a few calls."""


class Table(msgspec.Struct, Generic[Row], frozen=True, eq=False):
    """A table whose rows are records of one type."""

    name: str
    record: type[Row]
    key: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names, in order."""
        return self.record.__struct_fields__

    def key_of(self, row: Row) -> tuple[Value, ...]:
        """The key of a record, as the caller would write it."""
        return self.key_reader()(row)

    def key_reader(self) -> Callable[[Row], tuple[Value, ...]]:
        """``key_of`` as a function, for whoever asks for many."""
        if len(self.key) == 1:
            one = attrgetter(self.key[0])
            return lambda row: (one(row),)
        return attrgetter(*self.key)

    def encode(self, row: Row) -> Values:
        """A record as column values."""
        return at_rest(msgspec.structs.astuple(row), _places(self.columns))

    def encode_all(self, rows: Iterable[Row]) -> list[Values]:
        """Records as column values."""
        places = _places(self.columns)
        return [at_rest(msgspec.structs.astuple(row), places) for row in rows]

    def encode_key(self, key: tuple[Value, ...]) -> Values:
        """A key as column values."""
        return at_rest(key, _places(self.key))

    def decode(self, values: Values) -> Row:
        """Column values as a record. Raises StorageFailed when they are not one."""
        try:
            return msgspec.convert(as_written(values, _places(self.columns)), self.record)
        except (msgspec.ValidationError, AttributeError) as error:
            raise StorageFailed(f"a row of {self.name} is damaged: {error}") from None

    def select(self, clause: str) -> str:
        """A query for whole rows."""
        return _select(self.name, self.columns, clause)

    def select_key(self) -> str:
        """The query for one row by its key."""
        return _select_key(self.name, self.columns, self.key)

    def upsert(self, rows: int, into: str = "") -> str:
        """The statement that inserts or replaces so many rows, of this table or another one of its form."""
        return _upsert(into or self.name, self.columns, self.key, rows)


class Places(NamedTuple):
    """Where those columns stand that are stored otherwise than they are written; None for none."""

    event: int | None
    node: int | None


def at_rest(values: Values, places: Places) -> Values:
    """Values in their stored form: the event id as bytes, no node as an empty one, since no key is NULL."""
    if places.event is None or not isinstance(values[places.event], str):
        return values
    stored = list(values)
    stored[places.event] = event_id_bytes(EventId(stored[places.event]))
    if places.node is not None and stored[places.node] is None:
        stored[places.node] = ""
    return tuple(stored)


def as_written(values: Values, places: Places) -> Values:
    """The same the other way."""
    if places.event is None:
        return values
    written = list(values)
    written[places.event] = event_id_from_bytes(written[places.event])
    if places.node is not None:
        written[places.node] = written[places.node] or None
    return tuple(written)


@cache
def _places(columns: tuple[str, ...]) -> Places:
    event, node = (columns.index(name) if name in columns else None for name in ("event_id", "node"))
    return Places(event, node)


def portions(rows: Sequence[Values]) -> Iterator[tuple[int, list[Value]]]:
    """Rows as statements take them: how many, and their values one after another."""
    done = 0
    for size in ROWS_PER_STATEMENT:
        while len(rows) - done >= size:
            yield size, list(chain.from_iterable(rows[done : done + size]))
            done += size


@cache
def insert(name: str, columns: tuple[str, ...], rows: int) -> str:
    """The statement that inserts so many rows.

    When one is refused the whole transaction is lost, which it would be anyway; a statement that could be
    taken back alone first copies each page that it changes.
    """
    one = "(" + ", ".join("?" * len(columns)) + ")"
    return f"INSERT OR ROLLBACK INTO {name} ({_quoted(columns)}) VALUES {', '.join([one] * rows)}"  # noqa: S608 - own names


@cache
def _upsert(name: str, columns: tuple[str, ...], key: tuple[str, ...], rows: int) -> str:
    changed = ", ".join(f'"{column}" = excluded."{column}"' for column in columns if column not in key)
    return f"{insert(name, columns, rows)} ON CONFLICT ({_quoted(key)}) DO UPDATE SET {changed}"


@cache
def _select_key(name: str, columns: tuple[str, ...], key: tuple[str, ...]) -> str:
    return _select(name, columns, "WHERE " + " AND ".join(f'"{column}" = ?' for column in key))


@cache
def _select(name: str, columns: tuple[str, ...], clause: str) -> str:
    return f"SELECT {_quoted(columns)} FROM {name} {clause}"  # noqa: S608 - names and clauses are ours


def _quoted(columns: tuple[str, ...]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


class Cursor(Record, frozen=True):
    """How far another node's outbox was read and handled."""

    source: NodeId
    epoch: Epoch
    seq: Seq
    hash: bytes
    signature: bytes = b""
    """Of the checkpoint that stands there; empty where none was kept."""

    @property
    def head(self) -> Head:
        """The same as a head."""
        return Head(self.epoch, self.seq, self.hash)

    def checkpoint(self, mesh: MeshId) -> Checkpoint | None:
        """The same with its signature, if that was kept."""
        if not self.signature:
            return None
        return Checkpoint(mesh, self.source, self.epoch, self.seq, self.hash, self.signature)


OUTBOX = ("position", "event_id", "attempt", "kind", "corr_id", "header", "body", "blob")
"""Columns of the only table that is written by insert alone."""

DELIVERIES = Table("deliveries", Delivery, ("event_id", "node"))
RECEIVED = Table("received", Received, ("source", "event_id", "to_agent"))
CURSORS = Table("cursors", Cursor, ("source",))
BLOBS = Table("blobs", Blob, ("sha256",))
COPIES = Table("copies", Copy, ("source", "epoch"))
EPOCHS = Table("epochs", EpochRow, ("ordinal",))
DOUBTS = Table("doubts", Doubt, ("source",))
ERRANDS = Table("errands", Errand, ("kind", "subject"))
REMEMBERED = Table("remembered", Remembered, ("agent", "key"))
QUARANTINED = Table("quarantined", Quarantined, ("source", "epoch", "seq"))
INCIDENTS = Table("incidents", Incident, ("kind", "subject"))
LEDGER_FLOORS = Table("ledger_floors", LedgerFloor, ("source",))
READERS = Table("readers", Reader, ("node",))
AGENTS = Table("agents", LocalAgent, ("name",))
