"""Objectives from a file in the shape of OpenSLO v1 (https://openslo.com): our part of it, and nothing else.

Understood are the kinds ``SLO`` and ``Service``, rolling time windows, the budgeting method ``Occurrences``,
and metric sources of type ``gateway-mesh``: a ``thresholdMetric`` with ``lte`` and a value in milliseconds,
or a ``ratioMetric`` of what ended well. Everything else is refused, with file, line and field: an objective
that is read half is worse than none.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

from outbox.errors import InvalidId
from outbox.ids import agent_id, node_id
from outbox.kinds import RULES
from spark.errors import InvalidSlo
from spark.limits import SLOS_MAX
from spark.objectives import SELECTORS, Measure, Objective
from spark.yamlnodes import Section, documents

API_VERSION = "openslo/v1"
SOURCE_TYPE = "gateway-mesh"

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_DURATION = re.compile(r"([1-9]\d{0,3})([mhdw])", re.ASCII)
_UNIT_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_LABEL = re.compile(r"[A-Za-z0-9._:/@+-]{1,128}", re.ASCII)


_Selected = tuple[tuple[str, str], ...]


class _Indicator(NamedTuple):
    measure: Measure
    selected: _Selected
    is_ratio: bool = False


def parse_objectives(text: str, file: str) -> tuple[Objective, ...]:
    """All objectives of a file, in its order. ``file`` is its name for messages. Raises InvalidSlo."""
    found: list[Objective] = []
    services: set[str] = set()
    asked: list[tuple[Section, str]] = []
    for document in documents(text, file):
        version = document.text("apiVersion")
        if version != API_VERSION:
            document.refuse("apiVersion", f"is {version!r}", f"write {API_VERSION}")
        kind = document.text("kind")
        if kind == "Service":
            services.add(_service(document))
        elif kind == "SLO":
            objectives, spec, service = _slo(document)
            found += objectives
            asked.append((spec, service))
        else:
            document.refuse("kind", f"{kind!r} is not read here", "write SLO or Service")
    for spec, service in asked:
        if services and service not in services:
            spec.refuse("service", f"{service!r} is not in this file", _nearest(service, services))
    if not found:
        raise InvalidSlo(f"{file}: holds no SLO", hint=f"begin with `apiVersion: {API_VERSION}`, `kind: SLO`")
    return _distinct(found, file)


def _distinct(found: list[Objective], file: str) -> tuple[Objective, ...]:
    names = [objective.name for objective in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidSlo(f"{file}: two objectives are called {twice[0]!r}", hint="give each its own name")
    if len(found) > SLOS_MAX:
        raise InvalidSlo(f"{file}: more than {SLOS_MAX} objectives", hint="make two reports of two files")
    return tuple(found)


def _service(document: Section) -> str:
    name, _ = _metadata(document)
    spec = document.maybe("spec")
    if spec is not None:
        spec.text("description", "")
        spec.close()
    document.close()
    return name


def _metadata(document: Section) -> tuple[str, str]:
    metadata = document.section("metadata")
    name = metadata.text("name")
    if not _NAME.fullmatch(name):
        metadata.refuse("name", f"is {name[:40]!r}", "write lower case letters, digits and dashes")
    title = metadata.text("displayName", "")
    metadata.pairs("labels")
    metadata.pairs("annotations")
    metadata.close()
    return name, title


def _slo(document: Section) -> tuple[list[Objective], Section, str]:
    name, title = _metadata(document)
    spec = document.section("spec")
    spec.text("description", "")
    service = spec.text("service")
    method = spec.text("budgetingMethod")
    if method != "Occurrences":
        hint = "write Occurrences: messages are counted, not minutes"
        spec.refuse("budgetingMethod", f"is {method!r}", hint)
    window_ms = _window(spec)
    indicator = _indicator(spec)
    goals = spec.sections("objectives")
    names = [name] if len(goals) == 1 else [f"{name}-{i}" for i in range(1, len(goals) + 1)]
    objectives = [
        _objective(goal, indicator, name=own, title=title, window_ms=window_ms)
        for goal, own in zip(goals, names, strict=True)
    ]
    spec.close()
    document.close()
    return objectives, spec, service


def _window(spec: Section) -> int:
    windows = spec.sections("timeWindow")
    if len(windows) > 1:
        windows[1].refuse("", "is a second window", "write one SLO for each window")
    (window,) = windows
    text = window.text("duration")
    match = _DURATION.fullmatch(text)
    if match is None:
        window.refuse("duration", f"is {text[:20]!r}", "write 30m, 6h, 28d or 4w")
    if not window.truth("isRolling", default=False):
        window.refuse("isRolling", "is not true", "write isRolling: true; calendar windows are not read here")
    window.close()
    return int(match[1]) * _UNIT_MS[match[2]]


def _indicator(spec: Section) -> _Indicator:
    indicator = spec.section("indicator")
    metadata = indicator.maybe("metadata")
    if metadata is not None:
        metadata.skip("name", "displayName")
        metadata.close()
    inner = indicator.section("spec")
    inner.text("description", "")
    threshold, ratio = inner.maybe("thresholdMetric"), inner.maybe("ratioMetric")
    inner.close()
    indicator.close()
    if threshold is not None and ratio is None:
        return _source(threshold)
    if ratio is not None and threshold is None:
        return _ratio(ratio)
    return inner.refuse("", "needs thresholdMetric or ratioMetric, and not both", "see docs/SLA.md for both")


def _ratio(ratio: Section) -> _Indicator:
    if not ratio.truth("counter", default=True):
        ratio.refuse("counter", "is not true", "write counter: true: messages are counted")
    good = _source(ratio.section("good"))
    total = ratio.section("total")
    if _source(total, measured=False).selected != good.selected:
        total.refuse("", "selects other messages than good", "write the same selection in both")
    ratio.close()
    return _Indicator(good.measure, good.selected, is_ratio=True)


def _source(metric: Section, *, measured: bool = True) -> _Indicator:
    source = metric.section("metricSource")
    kind = source.text("type")
    if kind != SOURCE_TYPE:
        source.refuse("type", f"is {kind!r}", f"write {SOURCE_TYPE}")
    inner = source.section("spec") if measured else source.maybe("spec")
    measure, selected = Measure.ACCEPTED, _Selected()
    if inner is not None:
        measure = _measure(inner) if measured else measure
        selected = _selected(inner)
        inner.close()
    source.close()
    metric.close()
    return _Indicator(measure, selected)


def _measure(spec: Section) -> Measure:
    text = spec.text("measure")
    if text not in {*Measure}:
        spec.refuse("measure", f"is {text[:40]!r}", _nearest(text, Measure))
    return Measure(text)


def _selected(spec: Section) -> _Selected:
    found = []
    for name in SELECTORS:
        value = spec.text(name, "")
        if value:
            _check_value(spec, name, value)
            found.append((name, value))
    names = {name for name, _ in found}
    if {"agent", "toAgent"} <= names:
        spec.refuse("toAgent", "says the same as agent", "keep one of them")
    return tuple(found)


def _check_value(spec: Section, name: str, value: str) -> None:
    if name == "kind":
        kinds = {kind for kind, rule in RULES.items() if rule.accepted}
        if value not in kinds:
            spec.refuse(name, f"{value[:40]!r} is never acknowledged", _nearest(value, kinds))
        return
    check = node_id if name.endswith("Node") else agent_id if name.lower().endswith("agent") else None
    try:
        if check is not None:
            check(value)
        elif not _LABEL.fullmatch(value):
            spec.refuse(name, f"is {value[:40]!r}", "write up to 128 letters, digits and ._:/@+-")
    except InvalidId as error:
        spec.refuse(name, f"is {value[:40]!r}", error.hint or str(error))


def _objective(goal: Section, indicator: _Indicator, *, name: str, title: str, window_ms: int) -> Objective:
    own = goal.text("displayName", "")
    limit_ms = None if indicator.is_ratio else _limit(goal)
    target = _target(goal)
    goal.close()
    return Objective(
        name=name,
        title=" · ".join(part for part in (title, own) if part),
        measure=indicator.measure,
        selected=indicator.selected,
        limit_ms=limit_ms,
        target=target,
        window_ms=window_ms,
    )


def _limit(goal: Section) -> int:
    operator = goal.text("op")
    if operator != "lte":
        goal.refuse("op", f"is {operator!r}", "write lte: at most so many milliseconds")
    value = goal.number("value")
    if value is None or value != int(value) or not 1 <= value <= _UNIT_MS["w"] * 52:
        goal.refuse("value", "is no time", "write whole milliseconds, at least 1")
    return int(value)


def _target(goal: Section) -> float:
    share, percent = goal.number("target"), goal.number("targetPercent")
    if (share is None) == (percent is None):
        goal.refuse("", "needs target or targetPercent, and not both", "write target: 0.99")
    value = share if share is not None else (percent or 0) / 100
    if not 0 < value < 1:
        name, example = ("target", "0.99") if share is not None else ("targetPercent", "99")
        goal.refuse(name, "leaves no error budget, or nothing else", f"write {example} for 99 %")
    return value


def _nearest(text: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = get_close_matches(text, names, 1)
    return f"did you mean {near[0]}?" if near else f"one of: {', '.join(names)}"
