"""Service level objectives: which share of which messages keeps which promise, and what budget is left.

An objective is judged over the lifecycle table. A message is *judged* once it is known how it fared: it got
there, its time ran out, or it was given up; what is open and not yet late says nothing. It is *kept* when
the promise was. The error budget is the share that may be missed: ``1 - target`` of what was judged. *Burn*
is how fast it goes: 1 uses the budget up exactly at the end of the window, 14 in a fourteenth of it.

Conditions are SQL text over lifecycle columns, as the rules of ``incidents`` are.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from outbox.kinds import RULES
from outbox.records import DeliveryState
from spark.sla import Threshold, moment
from spark.tasks import STEPS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOUR_MS = 3_600_000
BURN_WINDOWS_MS = (HOUR_MS, 6 * HOUR_MS)
"""The usual pair: the short one says that it burns now, the long one that it is no blip."""

DEFAULT_TARGET = 0.99
DEFAULT_WINDOW_MS = 28 * 24 * HOUR_MS
"""Of the objectives that hold when nobody wrote any: four weeks, so that each has as many weekends."""


class Measure(StrEnum):
    """What an objective looks at."""

    ACCEPTED = "accepted"
    """From creation until it is on the receiver's disk."""
    PROCESSED = "processed"
    """From there until the turn is over or a reply is written."""
    ANSWERED = "answered"
    """From creation until the turn is over or a reply is written."""
    REPLIED = "replied"
    """From creation until the reply is written."""


class _Span(NamedTuple):
    start: str
    end: str


SPANS: dict[Measure, _Span] = {
    Measure.ACCEPTED: _Span("createdAt", "acceptedAt"),
    Measure.PROCESSED: _Span("acceptedAt", "doneAt"),
    Measure.ANSWERED: _Span("createdAt", "doneAt"),
    Measure.REPLIED: _Span("createdAt", "repliedAt"),
}
"""Columns of the lifecycle table."""

SELECTORS: dict[str, str] = {
    "kind": "kind",
    "agent": "toAgent",
    "fromAgent": "fromAgent",
    "toAgent": "toAgent",
    "fromNode": "fromNode",
    "toNode": "toNode",
    "capability": "capabilityId",
    "type": "type",
}
"""Name in the file → column. ``agent`` is who must act; ``fromAgent`` with ``toAgent`` is a route."""


class Objective(msgspec.Struct, frozen=True, kw_only=True):
    """One objective."""

    name: str
    title: str
    measure: Measure
    selected: tuple[tuple[str, str], ...] = ()
    """``(name of SELECTORS, value)``; all must hold."""
    limit_ms: int | None
    """Kept when the span takes at most this; None: when it ends well at all."""
    target: float
    """Share to be kept, above 0 and below 1."""
    window_ms: int
    """Rolling, up to the moment of the report."""


class Share(msgspec.Struct, frozen=True):
    """What happened in one window."""

    window_ms: int
    judged: int
    kept: int

    @property
    def missed(self) -> int:
        """Judged and not kept."""
        return self.judged - self.kept

    @property
    def achieved(self) -> float | None:
        """The share kept; None when nothing was judged."""
        return self.kept / self.judged if self.judged else None

    def burn(self, target: float) -> float | None:
        """How many times faster than the budget allows; None when nothing was judged."""
        return None if self.judged == 0 else (self.missed / self.judged) / (1 - target)


class Standing(msgspec.Struct, frozen=True):
    """How one objective stands."""

    objective: Objective
    whole: Share
    recent: tuple[Share, ...]
    """Of ``BURN_WINDOWS_MS``, those that are shorter than the objective's own."""

    @property
    def met(self) -> bool:
        """Whether the target is reached; nothing judged is nothing missed."""
        return self.whole.achieved is None or self.whole.achieved >= self.objective.target

    @property
    def allowed(self) -> float:
        """How many may be missed."""
        return (1 - self.objective.target) * self.whole.judged

    @property
    def budget_left(self) -> float | None:
        """Share of the error budget that is left; below zero when more was missed than may be."""
        burnt = self.whole.burn(self.objective.target)
        return None if burnt is None else 1 - burnt


def default_objectives(thresholds: Mapping[str, Threshold]) -> tuple[Objective, ...]:
    """What is judged when no file says otherwise: the thresholds of the incident rules, kept by 99 %.

    Steps of tasks are left out: who waits, waits for the task.
    """
    found = []
    for kind, threshold in thresholds.items():
        if kind in STEPS:
            continue
        found.append(_default(kind, Measure.ACCEPTED, threshold.accept_ms))
        if threshold.process_ms is not None:
            found.append(_default(kind, Measure.PROCESSED, threshold.process_ms))
    return tuple(found)


def _default(kind: str, measure: Measure, limit_ms: int) -> Objective:
    return Objective(
        name=f"{kind.replace('_', '-')}-{measure}",
        title="",
        measure=measure,
        selected=(("kind", kind),),
        limit_ms=limit_ms,
        target=DEFAULT_TARGET,
        window_ms=DEFAULT_WINDOW_MS,
    )


_PROCESSED_KINDS = ", ".join(f"'{kind}'" for kind, rule in RULES.items() if rule.processed)
_GIVEN_UP = f"state = '{DeliveryState.DEAD_LETTER}'"


def selection(objective: Objective) -> str:
    """Which rows an objective is about."""
    parts = [f"{SELECTORS[name]} = '{value}'" for name, value in objective.selected]
    if objective.measure is not Measure.ACCEPTED:
        parts.append(f"kind in ({_PROCESSED_KINDS})")
    return " and ".join(parts) or "true"


def judged(objective: Objective) -> str:
    """The rows of the selection whose fate is known; ``{as_of}`` is the moment of the report."""
    start, end = SPANS[objective.measure]
    due = (
        f"timestampadd(millisecond, {objective.limit_ms}L, {start})"
        if objective.limit_ms is not None
        else ("acceptDueAt" if objective.measure is Measure.ACCEPTED else "processDueAt")
    )
    known = f"{end} is not null or {_GIVEN_UP} or {due} < {{as_of}}"
    return f"({selection(objective)}) and {start} is not null and ({known})"


def kept(objective: Objective) -> str:
    """Those of the judged that kept the promise."""
    start, end = SPANS[objective.measure]
    if objective.limit_ms is not None:
        return f"{judged(objective)} and timestampdiff(millisecond, {start}, {end}) <= {objective.limit_ms}L"
    well = "" if objective.measure is Measure.ACCEPTED else " and coalesce(outcome, 'ok') <> 'failed'"
    return f"{judged(objective)} and {end} is not null and not {_GIVEN_UP}{well}"


def standings(lifecycle: "DataFrame", objectives: Sequence[Objective], as_of_ms: int) -> tuple[Standing, ...]:
    """Judge all of them in one pass over the lifecycle table.

    A message belongs to the window in which it was created.
    """
    if not objectives:
        return ()
    counted = [
        f"count_if(({condition(objective)}) and {_within(width, as_of_ms)})"
        for objective in objectives
        for width in _widths(objective)
        for condition in (judged, kept)
    ]
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

    row = lifecycle.agg(
        *(F.expr(text.replace("{as_of}", moment(as_of_ms))).alias(f"n{i}") for i, text in enumerate(counted))
    ).collect()[0]
    numbers = iter(row)
    return tuple(
        _standing(objective, [Share(width, next(numbers), next(numbers)) for width in _widths(objective)])
        for objective in objectives
    )


def _widths(objective: Objective) -> tuple[int, ...]:
    return (objective.window_ms, *(width for width in BURN_WINDOWS_MS if width < objective.window_ms))


def _within(width_ms: int, as_of_ms: int) -> str:
    return f"createdAt > {moment(as_of_ms - width_ms)}"


def _standing(objective: Objective, shares: list[Share]) -> Standing:
    return Standing(objective, shares[0], tuple(shares[1:]))
