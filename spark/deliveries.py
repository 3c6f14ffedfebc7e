"""The life of each root event: all statements about it, gathered into one row.

One group-by on ``rootId``, and every aggregate is a minimum or a maximum: duplicates, retries, repeated pages
and late events cannot change a result, and two halves of a history can be gathered apart and then together.
So there is no join, no sorting and no removal of duplicates, and the data is exchanged once.

Facts and their times are kept apart: a node whose clock was never set has still accepted the event.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from outbox.records import DeliveryState
from spark.events import Role
from spark.sla import Threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Gathered(NamedTuple):
    """One aggregate: the ``how`` of ``value`` over the statements with this role."""

    how: str
    role: Role
    value: str


GATHERED: dict[str, Gathered] = {
    "kind": Gathered("max", Role.ROOT, "kind"),
    "fromNode": Gathered("max", Role.ROOT, "sourceNodeId"),
    "fromAgent": Gathered("max", Role.ROOT, "sourceAgentId"),
    "toAgent": Gathered("max", Role.ROOT, "toAgentId"),
    "parentId": Gathered("max", Role.ROOT, "corrId"),
    "threadId": Gathered("max", Role.ROOT, "threadId"),
    "type": Gathered("max", Role.ROOT, "type"),
    "priority": Gathered("min", Role.ROOT, "priority"),
    "createdAt": Gathered("min", Role.ROOT, "at"),
    "expiresAt": Gathered("max", Role.ROOT, "expiresAt"),
    "first": Gathered("min", Role.ROOT, "named_struct('epoch', epoch, 'seq', seq, 'node', sourceNodeId)"),
    "last": Gathered("max", Role.ROOT, "named_struct('attempt', attempt, 'toNodes', toNodes)"),
    "isAccepted": Gathered("max", Role.ACCEPTED, "true"),
    "acceptedAt": Gathered("min", Role.ACCEPTED, "at"),
    "accepted": Gathered("min", Role.ACCEPTED, "named_struct('at', at, 'node', sourceNodeId)"),
    "isProcessed": Gathered("max", Role.PROCESSED, "true"),
    "processedAt": Gathered("min", Role.PROCESSED, "at"),
    "engagedAt": Gathered("min", Role.PROCESSED, "engagedAt"),
    # "ok" sorts after "failed": a turn that succeeded anywhere has succeeded.
    "outcome": Gathered("max", Role.PROCESSED, "outcome"),
    "error": Gathered("max", Role.PROCESSED, "error"),
    "deliveries": Gathered("max", Role.PROCESSED, "deliveries"),
    "isReplied": Gathered("max", Role.REPLIED, "true"),
    "repliedAt": Gathered("min", Role.REPLIED, "at"),
    "isRefused": Gathered("max", Role.REFUSED, "true"),
    "refusal": Gathered("max", Role.REFUSED, "error"),
    "isDead": Gathered("max", Role.DEAD, "true"),
    "deadAt": Gathered("min", Role.DEAD, "at"),
    "reason": Gathered("max", Role.DEAD, "coalesce(reason, error)"),
    "deadAttempts": Gathered("max", Role.DEAD, "attempts"),
}

STATES: tuple[tuple[DeliveryState, str], ...] = (
    (DeliveryState.DEAD_LETTER, "isDead"),
    (DeliveryState.REPLIED, "isReplied"),
    (DeliveryState.PROCESSED, "isProcessed"),
    (DeliveryState.ACCEPTED, "isAccepted"),
    (DeliveryState.RETRY_PENDING, "isRefused or attempts > 1"),
    (DeliveryState.EMITTED, "true"),
)
"""State and condition; the first that holds counts."""

LATENCIES: dict[str, tuple[str, str]] = {
    "acceptMs": ("createdAt", "acceptedAt"),
    "queueMs": ("acceptedAt", "engagedAt"),
    "turnMs": ("engagedAt", "processedAt"),
    "processMs": ("createdAt", "processedAt"),
    "replyMs": ("createdAt", "repliedAt"),
}
"""Milliseconds from one time to another. Below zero when the clocks of two nodes disagree: not hidden."""

COLUMNS = (
    "rootId", "kind", "type", "priority", "fromNode", "fromAgent", "toNode", "toAgent", "toNodes", "parentId",
    "threadId", "position", "createdAt", "acceptedAt", "engagedAt", "processedAt", "repliedAt", "deadAt",
    "expiresAt", "acceptDueAt", "processDueAt", "doneAt", "state", "outcome", "error", "refusal", "reason",
    "attempts", "deliveries",
    *LATENCIES,
)  # fmt: skip
"""The lifecycle table."""


def deliveries(statements: "DataFrame", thresholds: Mapping[str, Threshold]) -> "DataFrame":
    """One row a root event, with ``COLUMNS``.

    What was only ever answered, and is not in the lake itself, has no row: nothing is known of when it began.
    """
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

    gathered = [
        F.expr(f"{how}(case when role = '{role}' then {value} end)").alias(name)
        for name, (how, role, value) in GATHERED.items()
    ]
    lives = statements.groupBy("rootId").agg(*gathered).where("kind is not null")
    known = lives.selectExpr("* except (isAccepted, isProcessed, isReplied, isRefused, isDead)", *_facts())
    return known.selectExpr("*", *_judgements(thresholds)).select(*COLUMNS)


def _facts() -> list[str]:
    flags = ("isAccepted", "isProcessed", "isReplied", "isRefused", "isDead")
    return [
        *(f"coalesce({flag}, false) as {flag}" for flag in flags),
        "greatest(last.attempt, deadAttempts, 1) as attempts",
        # Before anybody accepted: where the last attempt was sent, when that is one node.
        "coalesce(accepted.node, case when last.toNodes not in ('', '*') then last.toNodes end) as toNode",
        "last.toNodes as toNodes",
        "concat_ws('/', first.node, first.epoch, first.seq) as position",
        "least(processedAt, repliedAt) as doneAt",
    ]


def _judgements(thresholds: Mapping[str, Threshold]) -> list[str]:
    cases = " ".join(f"when {condition} then '{state}'" for state, condition in STATES)
    accept = {kind: threshold.accept_ms for kind, threshold in thresholds.items()}
    process = {kind: threshold.process_ms for kind, threshold in thresholds.items()}
    return [
        f"case {cases} end as state",
        f"timestampadd(millisecond, {_by_kind(accept)}, createdAt) as acceptDueAt",
        f"timestampadd(millisecond, {_by_kind(process)}, acceptedAt) as processDueAt",
        *(
            f"timestampdiff(millisecond, {start}, {end}) as {name}"
            for name, (start, end) in LATENCIES.items()
        ),
    ]


def _by_kind(values: Mapping[str, int | None]) -> str:
    """A SQL expression: the value for the row's kind, null where there is none."""
    cases = [f"when '{kind}' then {value}L" for kind, value in sorted(values.items()) if value is not None]
    return f"case kind {' '.join(cases)} end" if cases else "cast(null as bigint)"
