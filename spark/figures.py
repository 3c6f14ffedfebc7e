"""Small results out of large tables: everything that the report shows, collected.

Times leave Spark as numbers: collected timestamps would be in the zone of this process.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

import msgspec

from outbox.kinds import RULES
from outbox.records import DeliveryState
from spark.gaps import Bucket as Held
from spark.limits import (
    AGENTS_MAX,
    BUCKETS_MAX,
    CAPABILITIES_MAX,
    FLOWS_MAX,
    INCIDENTS_JSON_MAX,
    MAINTENANCES_SHOWN,
    ROUTES_MAX,
    THREAD_EVENTS_MAX,
    THREADS_MAX,
)
from spark.objectives import Objective, standings
from spark.sla import MEASURED, PERCENTS, Threshold
from spark.summary import (
    Bucket,
    ClassCount,
    IncidentCount,
    IncidentLine,
    LatencyLine,
    Maintenance,
    StateCount,
    Stream,
    Summary,
    Thread,
    ThreadEvent,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_Line = TypeVar("_Line")

_SECOND = 1000
_HOUR = 3600 * _SECOND
WIDTHS_MS = (
    *(width * _SECOND for width in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)),
    *(width * _HOUR for width in (1, 2, 3, 6, 12, 24, 48, 168, 720, 2160, 8760)),
)
"""Slices of time that people count in."""

_NO_PROCESSING = ", ".join(
    f"'{kind}'" for kind, rule in RULES.items() if rule.accepted and not rule.processed
)

_LIFE = ("created", "accepted", "engaged", "done", "dead")

FARED = f"""
case
    when state = '{DeliveryState.DEAD_LETTER}' or outcome = 'failed' then 'failed'
    when state in ('{DeliveryState.PROCESSED}', '{DeliveryState.REPLIED}') then 'done'
    when state = '{DeliveryState.ACCEPTED}' and kind in ({_NO_PROCESSING}) then 'done'
    else 'waiting'
end
"""
"""How a root event fared, in three words."""


class Tables(msgspec.Struct, frozen=True):
    """What the job has made so far."""

    held: Sequence[Held]
    """Which entries of each outbox are in the lake."""
    lifecycle: "DataFrame"
    incidents: "DataFrame"
    states: "DataFrame"
    latency: "DataFrame"
    maintenance: "DataFrame"


def summarise(
    tables: Tables, as_of_ms: int, thresholds: Mapping[str, Threshold], objectives: Sequence[Objective]
) -> Summary:
    """Ask the tables for everything that the report shows."""
    width_ms, buckets = _buckets(tables.lifecycle)
    classes, opened = _classes(tables.incidents, width_ms)
    return Summary(
        as_of_ms=as_of_ms,
        thresholds=thresholds,
        standings=standings(tables.lifecycle, objectives, as_of_ms),
        streams=tuple(_streams(tables.held)),
        states=tuple(sorted(_lines(tables.states, StateCount), key=attrgetter("kind", "state"))),
        classes=classes,
        latency=tuple(_latency(tables.latency)),
        buckets=buckets,
        bucket_ms=width_ms,
        incident_counts=opened,
        threads=tuple(_threads(tables)),
        incidents=tuple(_lines(_worst(tables.incidents), IncidentLine)),
        maintenances=tuple(_lines(_latest(tables.maintenance), Maintenance)),
    )


def _lines(frame: "DataFrame", line: type[_Line]) -> Iterator[_Line]:
    return (msgspec.convert(row.asDict(), line) for row in frame.collect())


def _streams(held: Sequence[Held]) -> Iterator[Stream]:
    for node, parts in groupby(held, key=attrgetter("node")):
        counts = [(part.events, part.flagged) for part in parts]
        yield Stream(node, *(sum(column) for column in zip(*counts, strict=True)))


def states(lifecycle: "DataFrame") -> "DataFrame":
    """How many root events of a kind are in a state."""
    return lifecycle.groupBy("kind", "state").count().withColumnRenamed("count", "events")


def _classes(
    incidents: "DataFrame", width_ms: int
) -> tuple[tuple[ClassCount, ...], tuple[IncidentCount, ...]]:
    """How many of each class there are, and how many of them opened in each slice of time."""
    counted = (
        incidents.selectExpr(
            "class",
            "severity",
            "maintenanceOf",
            f"floor(unix_millis(openedAt) / {width_ms}) * {width_ms} as startMs",
            "closedAt",
        )
        .groupBy("class", "severity", "startMs")
        .agg({"*": "count", "closedAt": "count", "maintenanceOf": "count"})
        .selectExpr(
            "class", "severity", "startMs", "`count(1)`", "`count(closedAt)`", "`count(maintenanceOf)`"
        )
    )
    total: Counter[tuple[str, str]] = Counter()
    closed: Counter[tuple[str, str]] = Counter()
    excused: Counter[tuple[str, str]] = Counter()
    opened: list[IncidentCount] = []
    for name, severity, start_ms, found, over, meanwhile in counted.collect():
        total[severity, name] += found
        closed[severity, name] += over
        excused[severity, name] += meanwhile
        if start_ms is not None:
            opened.append(IncidentCount(start_ms, name, found))
    return (
        tuple(
            ClassCount(
                name,
                severity,
                total[severity, name],
                total[severity, name] - closed[severity, name],
                excused[severity, name],
            )
            for severity, name in sorted(total)
        ),
        tuple(sorted(opened, key=attrgetter("name", "start_ms"))),
    )


def told_lines(changes: "DataFrame") -> list[tuple[str, IncidentLine]]:
    """What a stream has to tell (``spark.changes``): what happened, and to which incident."""
    rows = (row.asDict() for row in _worst(changes).collect())
    return [(row.pop("change"), msgspec.convert(row, IncidentLine)) for row in rows]


def _worst(incidents: "DataFrame") -> "DataFrame":
    times = [f"unix_millis({name}) as {name}Ms" for name in ("openedAt", "closedAt", "createdAt")]
    lines = incidents.selectExpr("* except (openedAt, closedAt, createdAt, rulesVersion)", *times)
    order = ("closedAtMs is not null", "severity", "openedAtMs desc", "incidentId")
    return lines.orderBy(*(_order(text) for text in order)).limit(INCIDENTS_JSON_MAX)


def _latest(maintenance: "DataFrame") -> "DataFrame":
    times = [f"unix_millis({name}) as {name}Ms" for name in ("startAt", "endAt", "untilAt")]
    lines = maintenance.selectExpr("node", *times, "reason", "position")
    return lines.orderBy(*(_order(text) for text in ("startAtMs desc", "node"))).limit(MAINTENANCES_SHOWN)


def _threads(tables: Tables) -> Iterator[Thread]:
    """Threads with the most open incidents; the messages of all of them come in one query."""
    counted = (
        tables.incidents.where("threadId is not null")
        .groupBy("threadId")
        .agg({"*": "count", "closedAt": "count"})
        .selectExpr("threadId", "`count(1)` as incidents", "`count(1)` - `count(closedAt)` as open")
    )
    order = ("open desc", "incidents desc", "threadId")
    worst = counted.orderBy(*(_order(text) for text in order)).limit(THREADS_MAX).collect()
    events = _thread_events(tables, [row.threadId for row in worst]) if worst else []
    for row in worst:
        shown = tuple(event for event in events if event.thread_id == row.threadId)
        yield Thread(row.threadId, row.incidents, row.open, shown)


def _thread_events(tables: Tables, names: list[str]) -> list[ThreadEvent]:
    hit = tables.incidents.where(tables.incidents.threadId.isin(names)).selectExpr("rootId as hit").distinct()
    dated = tables.lifecycle.where(tables.lifecycle.threadId.isin(names)).where("createdAt is not null")
    ranked = dated.join(hit, dated.rootId == hit.hit, "left").selectExpr(
        "threadId", "rootId", "kind", "state", "fromNode",
        "fromAgent", "toAgent", "toNode", "outcome",
        *(f"unix_millis({name}At) as {name}AtMs" for name in _LIFE),
        "hit is not null as hasIncident",
        "row_number() over (partition by threadId order by hit is null, createdAt, rootId) as place",
    )  # fmt: skip
    kept = ranked.where(f"place <= {THREAD_EVENTS_MAX}").drop("place")
    return sorted(_lines(kept, ThreadEvent), key=attrgetter("created_at_ms", "root_id"))


def _order(text: str) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

    column = text.removesuffix(" desc")
    return F.expr(column).desc() if text.endswith(" desc") else F.expr(column)


def bucket_width(span_ms: int) -> int:
    """The smallest usual slice of time that cuts the span into at most ``BUCKETS_MAX`` pieces, plus one."""
    return next((width for width in WIDTHS_MS if width * BUCKETS_MAX >= span_ms), WIDTHS_MS[-1])


def _buckets(lifecycle: "DataFrame") -> tuple[int, tuple[Bucket, ...]]:
    dated = lifecycle.where("createdAt is not null").selectExpr(
        "unix_millis(createdAt) as ms", f"{FARED} as fared"
    )
    first, last = dated.selectExpr("min(ms)", "max(ms)").collect()[0]
    if first is None:
        return WIDTHS_MS[0], ()
    width = bucket_width(last - first)
    rows = dated.groupBy((dated.ms - dated.ms % width).alias("start"), "fared").count().collect()
    counts = {(start, fared): events for start, fared, events in rows}
    starts = range(min(counts)[0], max(counts)[0] + 1, width)
    return width, tuple(
        Bucket(start, *(counts.get((start, fared), 0) for fared in ("done", "waiting", "failed")))
        for start in starts
    )


_SHOWN = {
    "kind": 10,
    "all": 1,
    "nodes": FLOWS_MAX,
    "agent": AGENTS_MAX,
    "route": ROUTES_MAX,
    "capability": CAPABILITIES_MAX + 1,  # one line is of what asks for none
}
"""Dimensions in the order of the report, and how many lines of each: the busiest, or the slowest."""

_BUSIEST = "'kind', 'all', 'nodes'"


def _latency(latency: "DataFrame") -> Iterator[LatencyLine]:
    measure = f"if(dimension in ({_BUSIEST}), events, coalesce(processMsP95, acceptMsP95, -1))"
    ranked = latency.selectExpr(
        "*",
        f"row_number() over (partition by dimension order by {measure} desc, source, target) as place",
    )
    shown = " or ".join(f"dimension = '{name}' and place <= {top}" for name, top in _SHOWN.items())
    rows = [row.asDict() for row in ranked.where(shown).collect()]
    order = list(_SHOWN)
    for row in sorted(rows, key=lambda row: (order.index(row["dimension"]), row["place"])):
        del row["place"]
        yield _latency_line(row)


def _latency_line(row: dict[str, str | int | None]) -> LatencyLine:
    percentiles = {name: tuple(row.pop(f"{name}P{percent}") for percent in PERCENTS) for name in MEASURED}
    measured = {name: values for name, values in percentiles.items() if None not in values}
    return msgspec.convert(dict.fromkeys(MEASURED) | row | measured, LatencyLine)
