"""One collected event as a row: the only thing that collector and job agree on.

``EventRow`` is the table. Column names are its fields in camelCase, types follow from the annotations; the
schemas of pyarrow and Spark are both made from it, so they cannot drift apart.

Version 1 since 2026-11. A new optional column is no new version (readers give the schema, absent means null);
a changed type is one, and gets a directory of its own.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, NewType, get_args

import msgspec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SCHEMA_VERSION = 1

Micros = NewType("Micros", int)
"""Microseconds since 1970, UTC: the finest time that both Parquet and Spark read."""


class Flag(StrEnum):
    """Why a row is doubtful."""

    NOT_AN_EVENT = "not_an_event"
    """The bytes are no event; they are in the quarantine file."""
    HEADER_DISAGREES = "header_disagrees"
    """The header says something else than the body."""
    FOREIGN_SOURCE = "foreign_source"
    """The event names another node than the one whose outbox it is in."""
    BAD_PAYLOAD = "bad_payload"
    """An ACK, dead letter or signal without a readable record, or about another event than its ``corrId``."""
    UNREADABLE_TASK = "unreadable_task"
    """A task's event whose payload cannot be read: the step was taken, its details are not known."""
    UNKNOWN_KIND = "unknown_kind"
    """A kind of a newer version: kept, not judged."""
    CREATED_AT = "created_at"
    """The time is before 2020 or more than a day ahead: the fact counts, its time does not."""
    OUT_OF_RANGE = "out_of_range"
    """A count was too large and was cut."""


DISTRUSTED = (Flag.NOT_AN_EVENT, Flag.HEADER_DISAGREES, Flag.FOREIGN_SOURCE, Flag.BAD_PAYLOAD)
"""Rows with one of these say nothing about any message."""


class EventRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One entry of an outbox. Every entry has a row, so that a missing ``seq`` means a missing entry."""

    source_node_id: str
    epoch: str
    seq: int
    event_id: str | None = None
    kind: str | None = None
    attempt: int | None = None
    source_agent_id: str | None = None
    to_agent_id: str | None = None
    to_nodes: str | None = None
    """Destination nodes joined by commas, or ``*``."""
    corr_id: str | None = None
    """What it answers; for a reply, the parent."""
    root_id: str | None = None
    """What it is about: an ACK or dead letter is about what it refers to, anything else about itself."""
    thread_id: str | None = None
    created_at: Micros | None = None
    expires_at: Micros | None = None
    priority: int | None = None
    type: str | None = None
    status: str | None = None
    """Of an ACK: ``accepted`` or ``processed``."""
    outcome: str | None = None
    """Of an ACK: ``ok``, ``failed`` or ``refused``."""
    error: str | None = None
    """Of an ACK or dead letter, at most 500 characters."""
    reason: str | None = None
    """Of a dead letter, or of maintenance that is announced; at most 500 characters."""
    attempts: int | None = None
    """Of a dead letter: how often it was tried."""
    engaged_at: Micros | None = None
    """Of a ``processed`` ACK: when the agent was handed the event."""
    deliveries: int | None = None
    """Of a ``processed`` ACK: how many times it was handed over."""
    owner_node_id: str | None = None
    """Where the sender saw the recipient's owner."""
    hops: int | None = None
    """How many answers lie between this event and the first of its chain."""
    eta_at: Micros | None = None
    """Of an ACK or a task's step: when it will be done."""
    capability_id: str | None = None
    """Of a ``task_create``."""
    version: str | None = None
    """Of the capability: as requested by a ``task_create``, as resolved by a ``task_accept``."""
    skill_version: str | None = None
    """Of the delegation skill on a ``task_create``, of the executor skill on its steps."""
    accept_within_ms: int | None = None
    """Of a ``task_create``: how soon somebody must take it on."""
    complete_within_ms: int | None = None
    """Of a ``task_create``: how soon it must be done."""
    error_class: str | None = None
    """Of a ``task_failed``."""
    signal: str | None = None
    """Of a signal: which one it is, at most 500 characters."""
    until_at: Micros | None = None
    """Of maintenance that is announced: when the node expects to be back."""
    is_over: bool | None = None
    """Of maintenance: the node is back."""
    digest: int | None = None
    """The first 63 bits of the entry's leaf in its chain: two copies of one entry have the same."""
    bytes: int
    """Size of the body."""
    flags: str | None = None
    """Names of ``Flag`` joined by commas; null when nothing is wrong."""


class ColumnType(StrEnum):
    """The types that a column can have."""

    STRING = "string"
    LONG = "long"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    """Microseconds, UTC."""


class Column(NamedTuple):
    """One column of the events table."""

    name: str
    type: ColumnType
    nullable: bool


_TYPES: dict[object, ColumnType] = {
    str: ColumnType.STRING,
    int: ColumnType.LONG,
    bool: ColumnType.BOOLEAN,
    Micros: ColumnType.TIMESTAMP,
}


def _column(field: msgspec.structs.FieldInfo) -> Column:
    choices = get_args(field.type) or (field.type,)
    (plain,) = (choice for choice in choices if choice is not type(None))
    return Column(field.encode_name, _TYPES[plain], nullable=type(None) in choices)


COLUMNS: tuple[Column, ...] = tuple(_column(field) for field in msgspec.structs.fields(EventRow))


def arrow_schema() -> "pa.Schema":
    """The table for pyarrow."""
    import pyarrow as pa

    types = {
        ColumnType.STRING: pa.string(),
        ColumnType.LONG: pa.int64(),
        ColumnType.BOOLEAN: pa.bool_(),
        ColumnType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    }
    return pa.schema([pa.field(name, types[kind], nullable) for name, kind, nullable in COLUMNS])


def spark_schema() -> "StructType":
    """The table for Spark. Everything may be null there: Spark does not check, it only plans on it."""
    from pyspark.sql import types as T  # noqa: N812 - the name everybody gives it

    types: dict[ColumnType, T.DataType] = {
        ColumnType.STRING: T.StringType(),
        ColumnType.LONG: T.LongType(),
        ColumnType.BOOLEAN: T.BooleanType(),
        ColumnType.TIMESTAMP: T.TimestampType(),
    }
    return T.StructType([T.StructField(column.name, types[column.type]) for column in COLUMNS])


def nothing(spark: "SparkSession", schema: "StructType | str") -> "DataFrame":
    """No rows with this schema, and known to be none: what would follow from them is not run."""
    return spark.createDataFrame([], schema).where("false")
