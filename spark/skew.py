"""Clocks that disagree: how much older than what they answer the ACKs of a node are.

An ACK cannot come before its message, so the smallest time from the one to the other bounds from below how
far the clock of the receiver is behind the sender's. Both directions together enclose the truth.
"""

from typing import TYPE_CHECKING

from spark.limits import CLOCK_SKEW_MS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = ("fromNode", "toNode", "acks", "leastAcceptMs", "openedAt", "position")
"""The skew table: one row for each pair of nodes of which one accepted something of the other."""


def skew(lifecycle: "DataFrame") -> "DataFrame":
    """The table with ``COLUMNS``; ``openedAt`` and ``position`` are of the earliest and of the worst case."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

    pairs = lifecycle.where("acceptMs is not null and fromNode <> toNode").groupBy("fromNode", "toNode")
    behind = f"acceptMs < -{CLOCK_SKEW_MS}"
    return pairs.agg(
        F.expr("count(*)").alias("acks"),
        F.expr("min(acceptMs)").alias("leastAcceptMs"),
        F.expr(f"min(case when {behind} then createdAt end)").alias("openedAt"),
        F.expr(f"min(case when {behind} then named_struct('ms', acceptMs, 'at', position) end).at").alias(
            "position"
        ),
    ).select(*COLUMNS)


def clock_skews(skew: "DataFrame") -> "DataFrame":
    """The pairs whose clocks disagree by more than ``CLOCK_SKEW_MS``, as subjects of incidents."""
    return skew.where(f"leastAcceptMs < -{CLOCK_SKEW_MS}").selectExpr(
        "concat(fromNode, '>', toNode) as subject",
        "openedAt",
        "array(fromNode, toNode) as nodes",
        "concat('the clock of ', toNode, ' is at least ', -leastAcceptMs, ' ms behind that of ', fromNode)"
        " as detail",
        "array(position) as evidence",
    )
