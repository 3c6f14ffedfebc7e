"""Outboxes of which two copies were collected that disagree.

A lake holds each entry once, except where files overlap and where a collector found a second copy that its
node had signed as well (``forks/`` beside ``events/``). Only those places are looked at: which they are, the
file names say (``spark.sources``).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = ("node", "epoch", "first", "last", "entries", "openedAt")
"""The forks table: one row for each epoch of an outbox with entries of which there are two."""

_ENTRY = "named_struct('eventId', eventId, 'kind', kind, 'attempt', attempt, 'digest', digest)"


def forks(copies: "DataFrame") -> "DataFrame":
    """The table with ``COLUMNS``, from the rows of files of which there is more than one copy."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

    places = copies.groupBy("sourceNodeId", "epoch", "seq").agg(
        F.expr(f"min({_ENTRY}) <> max({_ENTRY})").alias("disagree"), F.expr("min(createdAt)").alias("at")
    )
    contested = places.where("disagree").groupBy("sourceNodeId", "epoch")
    return contested.agg(
        F.expr("min(seq)").alias("first"),
        F.expr("max(seq)").alias("last"),
        F.expr("count(*)").alias("entries"),
        F.expr("min(at)").alias("openedAt"),
    ).selectExpr("sourceNodeId as node", *COLUMNS[1:])


def forked(forks: "DataFrame") -> "DataFrame":
    """The forks as subjects of incidents."""
    return forks.selectExpr(
        "concat_ws('/', node, epoch) as subject",
        "openedAt",
        "array(node) as nodes",
        "concat(entries, ' entries from ', first, ' on are there twice, and differ') as detail",
        "array(concat_ws('/', node, epoch, first)) as evidence",
    )
