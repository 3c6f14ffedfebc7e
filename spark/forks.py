"""Outboxes that were written twice: two copies were collected that disagree, or a proof tells of two.

A lake holds each entry once, except where files overlap and where a collector found a second copy that its
node had signed as well (``forks/`` beside ``events/``). Only those places are looked at: which they are, the
file names say (``spark.sources``). A proof of the state room is about one place, and needs no entry of either
history.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from outbox.ids import Epoch, NodeId, Seq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Proof(msgspec.Struct, frozen=True):
    """A node has signed two histories that differ at this place: its state room proves it."""

    node: NodeId
    epoch: Epoch
    seq: Seq


COLUMNS = ("node", "epoch", "first", "last", "entries", "openedAt")
"""The forks table: one row for each epoch of an outbox that was written twice.

``entries`` are those of which there are two in the lake. Of one that only a proof tells of there are none,
and ``first`` is the place of the proof.
"""

_ENTRY = "named_struct('eventId', eventId, 'kind', kind, 'attempt', attempt, 'digest', digest)"
_PROOF = "sourceNodeId string, epoch string, seq bigint"


def forks(copies: "DataFrame", proofs: Sequence[Proof] = ()) -> "DataFrame":
    """The table with ``COLUMNS``, from the rows at places that are in two files or that a proof is about."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

    rows = copies.selectExpr(
        "sourceNodeId", "epoch", "seq", f"{_ENTRY} as entry", "createdAt", "false as proven"
    )
    if proofs:
        told = [msgspec.structs.astuple(proof) for proof in proofs]
        proven = copies.sparkSession.createDataFrame(told, _PROOF).selectExpr("*", "true as proven")
        rows = rows.unionByName(proven, allowMissingColumns=True)
    places = rows.groupBy("sourceNodeId", "epoch", "seq").agg(
        F.expr("coalesce(min(entry) <> max(entry), false)").alias("disagree"),
        F.expr("max(proven)").alias("proven"),
        F.expr("min(createdAt)").alias("at"),
    )
    contested = places.where("disagree or proven").groupBy("sourceNodeId", "epoch")
    return contested.agg(
        F.expr("coalesce(min(case when disagree then seq end), min(seq))").alias("first"),
        F.expr("max(seq)").alias("last"),
        F.expr("count_if(disagree)").alias("entries"),
        F.expr("min(at)").alias("openedAt"),
    ).selectExpr("sourceNodeId as node", *COLUMNS[1:])


_TWICE = "concat(entries, ' entries from ', first, ' on are there twice, and differ')"
_PROVEN = "concat('it has signed two histories, which differ at ', first, '; one is in the lake, or none')"


def forked(forks: "DataFrame") -> "DataFrame":
    """The forks as subjects of incidents."""
    return forks.selectExpr(
        "concat_ws('/', node, epoch) as subject",
        "openedAt",
        "array(node) as nodes",
        f"if(entries > 0, {_TWICE}, {_PROVEN}) as detail",
        "array(concat_ws('/', node, epoch, first)) as evidence",
    )
