"""The incidents table: a row for each rule that a root event broke, and for each that an outbox did."""

from typing import TYPE_CHECKING

from spark.rules import RULES, RULES_VERSION, STREAM_RULES, IncidentClass, Rule
from spark.sla import moment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS: dict[str, str] = {
    "incidentId": "string",
    "class": "string",
    "severity": "string",
    "openedAt": "timestamp",
    "closedAt": "timestamp",
    "subject": "string",
    "rootId": "string",
    "kind": "string",
    "threadId": "string",
    "fromNode": "string",
    "fromAgent": "string",
    "toNode": "string",
    "toAgent": "string",
    "nodes": "array<string>",
    "agents": "array<string>",
    "capabilityId": "string",
    "delegationVersion": "string",
    "executorVersion": "string",
    "createdAt": "timestamp",
    "state": "string",
    "attempts": "bigint",
    "deliveries": "bigint",
    "detail": "string",
    "position": "string",
    "evidence": "array<string>",
    "rulesVersion": "int",
    "maintenanceOf": "array<string>",
}
"""The incidents table: column → type. Where an outbox is the subject, what only messages have is null.

``maintenanceOf`` names the nodes in whose announced maintenance it opened; it is filled in last
(``spark.maintenance``), null where there is none, and always null in what a stream tells.
"""

_OF_LIFE = {
    "incidentId": "concat(class, ':', subject)",
    "detail": "coalesce(reason, error, refusal)",
    "nodes": "array_distinct(array_compact(array(fromNode, toNode, engagedNode, otherEngagedNode)))",
    "agents": "array_distinct(array_compact(array(fromAgent, toAgent)))",
    "rulesVersion": f"{RULES_VERSION}",
    "maintenanceOf": "null",
}

DETAIL = _OF_LIFE["detail"]

OF_LIFECYCLE = (
    "kind", "threadId", "fromNode", "fromAgent", "toNode", "toAgent", "engagedNode", "otherEngagedNode",
    "capabilityId", "delegationVersion", "executorVersion", "createdAt", "attempts", "deliveries", "position",
    "evidence",
)  # fmt: skip
"""What of a lifecycle row an incident shows besides its id, state and detail."""

STREAM_COLUMNS = ("subject", "openedAt", "nodes", "detail", "evidence")
"""What the table of an outbox's class has: its subject, since when, whom it concerns, words, positions."""


def incidents(lifecycle: "DataFrame") -> "DataFrame":
    """One row for each rule that a root event broke, with ``COLUMNS``."""
    return rows(lifecycle.where("incidents is not null").selectExpr("*", "inline(incidents)"))


def broken_rules(as_of_ms: int) -> str:
    """As ``hits``, and null where there are none: of nearly all rows nothing is built."""
    as_of = moment(as_of_ms)
    broken = " or ".join(f"({rule.condition.format(as_of=as_of)})" for rule in RULES.values())
    return f"case when {broken} then {hits(as_of)} end"


def hits(as_of: str) -> str:
    """The rules that a lifecycle row breaks, as a SQL array of ``class, severity, openedAt, closedAt``."""
    found = ", ".join(_hit(name, rule, as_of) for name, rule in RULES.items())
    return f"array_compact(array({found}))"


def rows(lives: "DataFrame", *more: str, **known: str) -> "DataFrame":
    """``more`` and ``COLUMNS``, from lifecycle rows with those of one hit; ``known`` says some otherwise."""
    values = _OF_LIFE | known
    return lives.selectExpr(*more, *(_typed(name, values.get(name, name)) for name in COLUMNS))


def stream_incidents(found: "DataFrame", name: IncidentClass) -> "DataFrame":
    """One row for each row of ``found``, which has ``STREAM_COLUMNS``; with ``COLUMNS``."""
    known = {column: column for column in STREAM_COLUMNS} | {
        "incidentId": f"concat('{name}:', subject)",
        "class": f"'{name}'",
        "severity": f"'{STREAM_RULES[name]}'",
        "fromNode": "get(nodes, 0)",
        "toNode": "get(nodes, 1)",
        "position": "get(evidence, 0)",
        "rulesVersion": f"{RULES_VERSION}",
    }
    return found.selectExpr(*(_typed(column, known.get(column, "null")) for column in COLUMNS))


def _typed(name: str, value: str) -> str:
    return f"cast({value} as {COLUMNS[name]}) as {name}"


def _hit(name: IncidentClass, rule: Rule, as_of: str) -> str:
    return (
        f"case when {rule.condition.format(as_of=as_of)} then named_struct("
        f"'class', '{name}', 'severity', '{rule.severity}', "
        f"'openedAt', {rule.opened_at}, 'closedAt', {rule.closed_at}) end"
    )
