"""What a report shows, as plain records: small, whatever the size of the lake.

Times are milliseconds since 1970, durations milliseconds; None where nothing was measured.
"""

from collections import Counter
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from spark.objectives import Standing
from spark.sla import Threshold


class Stream(msgspec.Struct, frozen=True, rename="camel"):
    """What was collected of one node."""

    node: str
    events: int
    flagged: int
    """Rows with a doubt about them."""
    forgotten: int = 0
    """Entries that the node had forgotten before they were collected."""


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
    during_maintenance: int = 0
    """Of all, those that opened while a node that they waited for was away as it had announced."""


class Maintenance(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A time for which a node had announced that it would be away."""

    node: str
    start_at_ms: int
    end_at_ms: int | None = None
    """When it said that it was back, or the time that it had named if that was before; null: not over."""
    until_at_ms: int | None = None
    """When it expected to be back."""
    reason: str | None = None
    position: str
    """Of the announcement in the node's outbox."""


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


class IncidentLine(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One incident."""

    incident_id: str
    name: str = msgspec.field(name="class")
    severity: str
    subject: str = ""
    """The message's event id; for what an outbox shows: its node, epoch, pair of nodes or unknown kind."""
    root_id: str | None = None
    kind: str | None = None
    from_node: str
    nodes: tuple[str, ...] = ()
    agents: tuple[str, ...] | None = None
    capability_id: str | None = None
    delegation_version: str | None = None
    executor_version: str | None = None
    evidence: tuple[str, ...] = ()
    """Positions of the entries that show it: node/epoch/seq."""
    state: str | None = None
    attempts: int | None = None
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
    maintenance_of: tuple[str, ...] | None = None
    """Nodes in whose announced maintenance it opened."""


class IncidentCount(msgspec.Struct, frozen=True, rename="camel"):
    """Incidents of one class that opened in one slice of time; slices are those of the buckets."""

    start_ms: int
    name: str
    incidents: int


class ThreadEvent(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One root event of a thread, with the times of its life."""

    thread_id: str
    root_id: str
    kind: str
    state: str
    from_node: str
    created_at_ms: int
    from_agent: str | None = None
    to_agent: str | None = None
    to_node: str | None = None
    outcome: str | None = None
    accepted_at_ms: int | None = None
    engaged_at_ms: int | None = None
    done_at_ms: int | None = None
    dead_at_ms: int | None = None
    has_incident: bool = False


class Thread(msgspec.Struct, frozen=True, rename="camel"):
    """One of the worst threads: how many incidents it has, and the life of its messages."""

    thread_id: str
    incidents: int
    open: int
    events: tuple[ThreadEvent, ...]
    """By creation."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a report shows."""

    as_of_ms: int
    thresholds: Mapping[str, Threshold]
    standings: tuple[Standing, ...] = ()
    """How the objectives stand, in the order of their file."""
    streams: tuple[Stream, ...]
    states: tuple[StateCount, ...]
    classes: tuple[ClassCount, ...]
    latency: tuple[LatencyLine, ...]
    """The dimensions ``all``, ``kind`` and ``nodes`` whole, of ``agent``, ``route`` and
    ``capability`` the slowest."""
    buckets: tuple[Bucket, ...]
    bucket_ms: int
    incident_counts: tuple[IncidentCount, ...] = ()
    threads: tuple[Thread, ...] = ()
    """Those with the most open incidents first."""
    incidents: tuple[IncidentLine, ...]
    """The worst and newest; the Parquet table has all of them."""
    maintenances: tuple[Maintenance, ...] = ()
    """The latest first; the Parquet table has more."""

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

    @property
    def during_maintenance(self) -> int:
        """Incidents that opened while a node that they waited for was away as it had announced."""
        return sum(count.during_maintenance for count in self.classes)

    def of(self, dimension: str) -> tuple[LatencyLine, ...]:
        """The latency lines of one dimension."""
        return tuple(line for line in self.latency if line.dimension == dimension)


def forgetting(summary: Summary, forgotten: Mapping[tuple[str, str], int]) -> Summary:
    """The same with how many entries of each node's outbox (by node and epoch) were forgotten."""
    by_node: Counter[str] = Counter()
    for (node, _), entries in forgotten.items():
        by_node[node] += entries
    streams = tuple(replace(stream, forgotten=by_node[stream.node]) for stream in summary.streams)
    return replace(summary, streams=streams)
