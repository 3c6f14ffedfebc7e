"""Rows that a commit has changed, as one value.

An obligation changes three times within some milliseconds and then hardly ever again, and a turn and a cursor
do much the same. So a commit writes what has changed as one row of ``changes``, whole rows in their new form,
and they go to their own tables later: many at once, and each only as it is by then. Until then a row is
*behind*, and who reads it looks into the changes first.

A value is a map of table to rows in msgpack, a row its fields in their order. Fields are only ever added at
the end, with a default, so that a newer program reads what an older one left. An empty value says that all
before it is in the tables.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from outbox.errors import StorageFailed
from outbox.records import Delivery, Received, Record
from outbox.tables import CURSORS, DELIVERIES, RECEIVED, Cursor, Table

BEHIND: tuple[Table[Any], ...] = (DELIVERIES, RECEIVED, CURSORS)
"""Tables whose rows may be behind."""

ALL_IN_TABLES = b""
"""The value that stands for no change."""


class _Changed(msgspec.Struct, forbid_unknown_fields=True):
    deliveries: tuple[Delivery, ...] = ()
    received: tuple[Received, ...] = ()
    cursors: tuple[Cursor, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Changed).decode


def pack(changed: Mapping[Table[Any], Iterable[Record]]) -> bytes:
    """The value of some rows."""
    return _encode({table.name: list(rows) for table, rows in changed.items()})


NO_ROWS = pack({})
"""A value that changes nothing: it is written to find out whether there is room for one."""


def unpack(value: bytes) -> dict[Table[Any], list[Record]]:
    """The rows of a value that is not empty. Raises StorageFailed when it is none."""
    try:
        found = _decode(value)
    except msgspec.MsgspecError as error:
        raise StorageFailed(f"a row of changes is damaged: {error}", hint="restore from a backup") from None
    changed = {table: list(getattr(found, table.name)) for table in BEHIND}
    return {table: rows for table, rows in changed.items() if rows}
