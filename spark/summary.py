"""What a report shows, as plain records: small, whatever the size of the lake.

Times are milliseconds since 1970, durations milliseconds; None where nothing was measured.
"""

from collections.abc import Mapping

import msgspec

from outbox.timestamps import rfc3339
from spark.incidents import RULES_VERSION
from spark.sla import Threshold

JSON_VERSION = 1
"""Of ``incidents.json``, since 2026-11: new fields may come, none goes or changes its meaning."""


class Stream(msgspec.Struct, frozen=True, rename="camel"):
    """What was collected of one node."""

    node: str
    events: int
    flagged: int
    """Rows with a doubt about them."""


class StateCount(msgspec.Struct, frozen=True, rename="camel"):
    """How many events of a kind are in a state."""

    kind: str
    state: str
    events: int


class ClassCount(msgspec.Struct, frozen=True, rename="camel"):
    """How many incidents of a class there are."""

    name: str
    severity: str
    incidents: int
    open: int


class Bucket(msgspec.Struct, frozen=True, rename="camel"):
    """Root events created in one slice of time, by how they fared."""

    start_ms: int
    done: int
    waiting: int
    failed: int


class LatencyLine(msgspec.Struct, frozen=True, rename="camel"):
    """One row of the latency table: counts and percentiles of one kind, route, agent or pair of nodes."""

    dimension: str
    source: str
    target: str
    events: int
    accept_judged: int
    accepted_in_time: int
    process_judged: int
    processed_in_time: int
    failed: int
    dead: int
    retried: int
    accept_ms: tuple[int, int, int] | None
    """50th, 95th and 99th percentile."""
    process_ms: tuple[int, int, int] | None
    reply_ms: tuple[int, int, int] | None


class IncidentLine(msgspec.Struct, frozen=True, rename="camel"):
    """One incident."""

    incident_id: str
    name: str = msgspec.field(name="class")
    severity: str
    root_id: str
    kind: str
    from_node: str
    state: str
    attempts: int
    opened_at_ms: int | None = None
    closed_at_ms: int | None = None
    created_at_ms: int | None = None
    thread_id: str | None = None
    from_agent: str | None = None
    to_node: str | None = None
    to_agent: str | None = None
    deliveries: int | None = None
    detail: str | None = None
    position: str | None = None


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a report shows."""

    as_of_ms: int
    thresholds: Mapping[str, Threshold]
    streams: tuple[Stream, ...]
    states: tuple[StateCount, ...]
    classes: tuple[ClassCount, ...]
    latency: tuple[LatencyLine, ...]
    """The dimensions ``all``, ``kind`` and ``nodes`` whole, of ``agent`` and ``route`` the slowest."""
    buckets: tuple[Bucket, ...]
    bucket_ms: int
    incidents: tuple[IncidentLine, ...]
    """The worst and newest; the Parquet table has all of them."""

    @property
    def missing_nodes(self) -> tuple[str, ...]:
        """Nodes that were written to and whose outbox is not in the lake: their answers cannot be seen."""
        collected = {stream.node for stream in self.streams}
        addressed = {node for line in self.of("nodes") for node in line.target.split(",")}
        return tuple(sorted(addressed - collected - {"", "*"}))

    @property
    def open_incidents(self) -> int:
        """Incidents that nothing has closed."""
        return sum(count.open for count in self.classes)

    def of(self, dimension: str) -> tuple[LatencyLine, ...]:
        """The latency lines of one dimension."""
        return tuple(line for line in self.latency if line.dimension == dimension)


def incidents_json(summary: Summary, incidents_max: int) -> bytes:
    """The document for machines: version, counts, and the first incidents."""
    document = {
        "schemaVersion": JSON_VERSION,
        "rulesVersion": RULES_VERSION,
        "asOf": rfc3339(summary.as_of_ms),
        "thresholds": {
            kind: {"acceptMs": threshold.accept_ms, "processMs": threshold.process_ms}
            for kind, threshold in summary.thresholds.items()
        },
        "nodes": summary.streams,
        "missingNodes": summary.missing_nodes,
        "states": summary.states,
        "classes": summary.classes,
        "incidents": summary.incidents[:incidents_max],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
