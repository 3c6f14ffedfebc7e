"""Which messages broke a promise: rules as data, over the lifecycle table.

A condition is SQL text with ``{as_of}`` in it. It is built into a query late, since Spark has no columns
before it has a session, and so that other engines can run the same text.

Version 1 of the rules since 2026-11; a changed condition is a new version, so that old reports can be
explained.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from outbox.records import DeliveryState
from spark.sla import moment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RULES_VERSION = 1


class IncidentClass(StrEnum):
    """What went wrong."""

    NEVER_ACCEPTED = "never_accepted"
    """Nobody has it on disk, and the time for that is over."""
    DEAD_LETTER = "dead_letter"
    """The sender gave it up."""
    TURN_FAILED = "turn_failed"
    """The agent, or its handler, failed."""
    ACCEPTED_NOT_PROCESSED = "accepted_not_processed"
    """On disk at the receiver, and no answer in time; closed by a late one."""


class Severity(StrEnum):
    """How soon somebody should look."""

    CRITICAL = "critical"
    MAJOR = "major"


class Rule(NamedTuple):
    """When a lifecycle row is an incident, since when and until when."""

    severity: Severity
    condition: str
    opened_at: str
    closed_at: str = "cast(null as timestamp)"


_OPEN = f"state in ('{DeliveryState.EMITTED}', '{DeliveryState.RETRY_PENDING}')"
_ALIVE = f"state <> '{DeliveryState.DEAD_LETTER}'"

RULES: dict[IncidentClass, Rule] = {
    IncidentClass.NEVER_ACCEPTED: Rule(
        Severity.CRITICAL, f"{_OPEN} and acceptDueAt < {{as_of}}", opened_at="acceptDueAt"
    ),
    IncidentClass.DEAD_LETTER: Rule(
        Severity.CRITICAL, f"state = '{DeliveryState.DEAD_LETTER}'", opened_at="deadAt"
    ),
    IncidentClass.TURN_FAILED: Rule(
        Severity.MAJOR, f"outcome = 'failed' and {_ALIVE}", opened_at="processedAt"
    ),
    IncidentClass.ACCEPTED_NOT_PROCESSED: Rule(
        Severity.MAJOR,
        f"state = '{DeliveryState.ACCEPTED}' and processDueAt < {{as_of}}"
        f" or {_ALIVE} and doneAt > processDueAt",
        opened_at="processDueAt",
        closed_at="doneAt",
    ),
}

COLUMNS = (
    "incidentId", "class", "severity", "openedAt", "closedAt", "rootId", "kind", "threadId", "fromNode",
    "fromAgent", "toNode", "toAgent", "createdAt", "state", "attempts", "deliveries", "detail", "position",
    "rulesVersion",
)  # fmt: skip
"""The incidents table."""


def incidents(deliveries: "DataFrame", as_of_ms: int) -> "DataFrame":
    """One row for each rule that a root event broke, with ``COLUMNS``."""
    found = ", ".join(_hit(name, rule, moment(as_of_ms)) for name, rule in RULES.items())
    hits = deliveries.selectExpr("*", f"inline(filter(array({found}), hit -> hit is not null))")
    return hits.selectExpr(
        "concat(class, ':', rootId) as incidentId",
        "coalesce(reason, error, refusal) as detail",
        f"{RULES_VERSION} as rulesVersion",
        "*",
    ).select(*COLUMNS)


def _hit(name: IncidentClass, rule: Rule, as_of: str) -> str:
    return (
        f"case when {rule.condition.format(as_of=as_of)} then named_struct("
        f"'class', '{name}', 'severity', '{rule.severity}', "
        f"'openedAt', {rule.opened_at}, 'closedAt', {rule.closed_at}) end"
    )
