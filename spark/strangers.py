"""Events of kinds that this version does not know: kept in the lake, not judged, and told."""

from typing import TYPE_CHECKING

from spark.schema import Flag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = ("node", "kind", "events", "openedAt", "position")
"""One row for each node and unknown kind."""


def strangers(events: "DataFrame") -> "DataFrame":
    """The table with ``COLUMNS``: how many there are, and where and when the first."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

    unknown = events.where(f"find_in_set('{Flag.UNKNOWN_KIND}', flags) > 0")
    first = F.expr("min(named_struct('epoch', epoch, 'seq', seq))").alias("first")
    return (
        unknown.groupBy("sourceNodeId", "kind")
        .agg(F.expr("count(*)").alias("events"), F.expr("min(createdAt)").alias("openedAt"), first)
        .selectExpr(
            "sourceNodeId as node",
            "kind",
            "events",
            "openedAt",
            "concat_ws('/', sourceNodeId, first.epoch, first.seq) as position",
        )
    )


def unknown_kinds(strangers: "DataFrame") -> "DataFrame":
    """The unknown kinds as subjects of incidents."""
    return strangers.selectExpr(
        "concat_ws('/', node, kind) as subject",
        "openedAt",
        "array(node) as nodes",
        "concat(events, ' events of kind ', kind) as detail",
        "array(position) as evidence",
    )
