"""What is promised for each kind, and how well it was kept: counts and percentiles by several dimensions.

Times are judged *as of* a moment: what is still open then and overdue has missed its promise, what is open
and not yet due is not judged. Answers from after that moment still count, since clocks differ.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from outbox.kinds import Kind
from outbox.records import DeliveryState
from spark.errors import InvalidThreshold
from spark.events import ROOT_KINDS
from spark.tasks import STEPS, TaskKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KIND = re.compile(r"[a-z_]{1,40}", re.ASCII)


class Threshold(msgspec.Struct, frozen=True):
    """What is promised for one kind, in milliseconds."""

    accept_ms: int
    """From its creation to ``ack:accepted``."""
    process_ms: int | None = None
    """From there to ``ack:processed`` or a reply; None for kinds that get no such answer."""


DEFAULTS: Mapping[str, Threshold] = {
    Kind.MESSAGE: Threshold(accept_ms=60_000, process_ms=300_000),
    Kind.REPLY: Threshold(accept_ms=60_000),
    TaskKind.CREATE: Threshold(accept_ms=60_000, process_ms=120_000),
    **{step: Threshold(accept_ms=60_000) for step in STEPS},
}
"""A minute to reach the other machine's disk; five more for a coding agent's turn, two to take on a task."""


def check_thresholds(thresholds: Mapping[str, Threshold]) -> None:
    """Raises InvalidThreshold for kinds nobody acknowledges and for times below one millisecond."""
    for kind, threshold in thresholds.items():
        if not _KIND.fullmatch(kind) or kind not in ROOT_KINDS:
            raise InvalidThreshold(f"events of kind {kind[:40]!r} are not acknowledged")
        if min(threshold.accept_ms, 1 if threshold.process_ms is None else threshold.process_ms) < 1:
            raise InvalidThreshold(f"the thresholds of {kind} must be at least 1 ms")


DIMENSIONS: dict[str, tuple[str, str]] = {
    "all": ("''", "''"),
    "kind": ("kind", "''"),
    "route": ("fromAgent", "toAgent"),
    "agent": ("toAgent", "''"),
    "capability": ("capabilityId", "''"),
    "nodes": ("fromNode", "toNode"),
}
"""What is summed up by what: dimension → (source, target)."""

MEASURED = ("acceptMs", "processMs", "replyMs")
PERCENTS = (50, 95, 99)

COUNTS: dict[str, str] = {
    "events": "true",
    "acceptedInTime": "acceptedAt <= acceptDueAt",
    "acceptJudged": "acceptDueAt is not null and (acceptedAt is not null or acceptDueAt < {as_of})",
    "processedInTime": "doneAt <= processDueAt",
    "processJudged": "processDueAt is not null and (doneAt is not null or processDueAt < {as_of})",
    "failed": "outcome = 'failed'",
    "dead": f"state = '{DeliveryState.DEAD_LETTER}'",
    "retried": "attempts > 1",
}
"""Column → which rows it counts."""


def moment(as_of_ms: int) -> str:
    """A moment as a SQL expression that does not depend on any time zone."""
    return f"timestamp_millis({int(as_of_ms)}L)"


def latency(deliveries: "DataFrame", as_of_ms: int) -> "DataFrame":
    """``dimension, source, target``, the counts, and ``acceptMsP50`` … ``replyMsP99``."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

    groups = ", ".join(
        f"named_struct('dimension', '{name}',"
        f" 'source', coalesce({source}, ''), 'target', coalesce({target}, ''))"
        for name, (source, target) in DIMENSIONS.items()
    )
    counts = [
        F.expr(f"count_if({condition.format(as_of=moment(as_of_ms))})").alias(name)
        for name, condition in COUNTS.items()
    ]
    shares = ", ".join(str(percent / 100) for percent in PERCENTS)
    middles = [F.expr(f"percentile_approx({name}, array({shares}))").alias(name) for name in MEASURED]
    grouped = deliveries.selectExpr("*", f"inline(array({groups}))").groupBy("dimension", "source", "target")
    flat = [
        f"{name}[{place}] as {name}P{percent}" for name in MEASURED for place, percent in enumerate(PERCENTS)
    ]
    return grouped.agg(*counts, *middles).selectExpr("dimension", "source", "target", *COUNTS, *flat)
