"""``incidents.json``: the report for programs.

Its JSON Schema is ``docs/incidents.schema.json``, made from these records (``make docs``).
"""

import msgspec

from outbox.timestamps import rfc3339
from spark.objectives import Measure, Share, Standing
from spark.rules import RULES_VERSION
from spark.summary import ClassCount, IncidentLine, Maintenance, StateCount, Stream, Summary

JSON_VERSION = 1
"""Of the document, since 2026-11: new fields may come, none goes or changes its meaning."""


class ThresholdLine(msgspec.Struct, frozen=True, rename="camel"):
    """What the incident rules hold a kind to, in milliseconds."""

    accept_ms: int
    process_ms: int | None


class Burn(msgspec.Struct, frozen=True, rename="camel"):
    """How fast the error budget went in one window up to the moment of the report."""

    window_ms: int
    judged: int
    missed: int
    burn: float | None
    """1 uses the budget up exactly at the end of the objective's window; null when nothing was judged."""


class ObjectiveLine(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One objective and how it stands."""

    name: str
    title: str
    measure: Measure
    selected: dict[str, str]
    limit_ms: int | None
    """Null for a ratio of what ended well."""
    target: float
    window_ms: int
    judged: int
    kept: int
    achieved: float | None
    """Share kept; null when nothing was judged."""
    met: bool
    budget_left: float | None
    """Share of the error budget that is left; below zero when more was missed than may be."""
    burns: list[Burn]


class IncidentsDocument(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The whole document. ``incidents`` has the worst and newest; the Parquet table has all of them."""

    schema_version: int
    rules_version: int
    as_of: str
    """RFC 3339, UTC."""
    thresholds: dict[str, ThresholdLine]
    objectives: list[ObjectiveLine]
    nodes: list[Stream]
    missing_nodes: list[str]
    """Written to, and not collected: what they accepted or answered could not be seen."""
    states: list[StateCount]
    classes: list[ClassCount]
    incidents: list[IncidentLine]
    maintenances: list[Maintenance]
    """What nodes had announced, the latest first; the Parquet table has more."""


def document(summary: Summary, incidents_max: int) -> IncidentsDocument:
    """What the document says of a report."""
    return IncidentsDocument(
        schema_version=JSON_VERSION,
        rules_version=RULES_VERSION,
        as_of=rfc3339(summary.as_of_ms),
        thresholds={
            kind: ThresholdLine(threshold.accept_ms, threshold.process_ms)
            for kind, threshold in summary.thresholds.items()
        },
        objectives=[_objective(standing) for standing in summary.standings],
        nodes=list(summary.streams),
        missing_nodes=list(summary.missing_nodes),
        states=list(summary.states),
        classes=list(summary.classes),
        incidents=list(summary.incidents[:incidents_max]),
        maintenances=list(summary.maintenances),
    )


def incidents_json(summary: Summary, incidents_max: int) -> bytes:
    """The bytes of the document."""
    return msgspec.json.format(msgspec.json.encode(document(summary, incidents_max)), indent=2) + b"\n"


def schema() -> dict[str, object]:
    """The JSON Schema of the document."""
    (top,), components = msgspec.json.schema_components([IncidentsDocument], ref_template="#/$defs/{name}")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **top, "$defs": components}


def _objective(standing: Standing) -> ObjectiveLine:
    objective, whole = standing.objective, standing.whole
    return ObjectiveLine(
        name=objective.name,
        title=objective.title,
        measure=objective.measure,
        selected=dict(objective.selected),
        limit_ms=objective.limit_ms,
        target=objective.target,
        window_ms=objective.window_ms,
        judged=whole.judged,
        kept=whole.kept,
        achieved=whole.achieved,
        met=standing.met,
        budget_left=standing.budget_left,
        burns=[_burn(share, objective.target) for share in (whole, *standing.recent)],
    )


def _burn(share: Share, target: float) -> Burn:
    return Burn(share.window_ms, share.judged, share.missed, share.burn(target))
