"""Incidents in the report: each class over time, then the worst and newest one by one."""

from collections import defaultdict
from collections.abc import Iterable

from spark.charts import strip
from spark.limits import DETAIL_MAX, NAME_MAX, SAMPLES_MAX
from spark.markup import NOTHING, cell, clock, duration, moment, number, short, table, text
from spark.rules import IncidentClass
from spark.summary import ClassCount, IncidentLine, Summary

_TONES = {"critical": "bad", "major": "wait", "minor": "accent"}
_NONE = "None: every promise was kept."
_MEANWHILE = "in maintenance"
"""Of all: how many opened while a node that they waited for was away as it had announced."""

MEANINGS: dict[str, str] = {
    IncidentClass.NEVER_ACCEPTED: "on nobody's disk in time: is the other node up, was it collected?",
    IncidentClass.DEAD_LETTER: "given up by its sender",
    IncidentClass.SEQ_GAP: "entries of an outbox are missing in the lake",
    IncidentClass.FORK: "a node has signed two histories: was a backup put back, does a copy run?",
    IncidentClass.TURN_FAILED: "the agent, or its handler, failed",
    IncidentClass.ACCEPTED_NOT_PROCESSED: "on disk there, not done in time: is its agent connected?",
    IncidentClass.ANSWERED_AFTER_DEAD_LETTER: "done there, given up here",
    IncidentClass.ETA_BREACH: "a task is not done when its agent said",
    IncidentClass.PROGRESS_BREACH: "a task's agent says nothing for too long",
    IncidentClass.TASK_FAILED: "a task's agent gave it up",
    IncidentClass.CONTRACT_MISMATCH: "a result is not what its capability promises",
    IncidentClass.ROUTING_MISS_REPEATED: "sent again and again to nodes that do not have the agent",
    IncidentClass.DUPLICATE_ENGAGEMENT: "agents of two nodes were handed the same message",
    IncidentClass.LOOP: "answers to answers, up to the bound",
    IncidentClass.LATE_ACK: "on the other disk, later than promised",
    IncidentClass.CLOCK_SKEW: "answers are older than their questions: clocks differ",
    IncidentClass.UNKNOWN_KIND: "of a later version, not judged",
}
"""A class in a few words: the page is read by who does not know them by heart."""


def classes(summary: Summary) -> str:
    """A row a class: when its incidents opened, how many there are, how many of them are open."""
    starts = [bucket.start_ms for bucket in summary.buckets]
    counts: dict[str, dict[int, int]] = defaultdict(dict)
    for count in summary.incident_counts:
        counts[count.name][count.start_ms] = count.incidents
    rows = [
        _class(line, [counts[line.name].get(start, 0) for start in starts], summary)
        for line in summary.classes
    ]
    if not rows or not starts:
        return table(("class", "all", "open", *_apart(summary)), rows, _NONE)
    ends = dict.fromkeys((starts[0], starts[len(starts) // 2], starts[-1]))
    axis = "".join(f"<span>{clock(start, summary.bucket_ms)}</span>" for start in ends)
    width = f"opened, a column: {duration(summary.bucket_ms)}"
    opened = (f'{width}<div class="scale">{axis}</div>', "plot")
    return table(["class", opened, "all", "open", *_apart(summary)], rows, _NONE)


def _apart(summary: Summary) -> tuple[str, ...]:
    """A column of its own, where there is anything to show in it."""
    return (_MEANWHILE,) if summary.during_maintenance else ()


def _class(line: ClassCount, opened: list[int], summary: Summary) -> str:
    starts = [bucket.start_ms for bucket in summary.buckets]
    drawn = strip(opened, starts, summary.bucket_ms, _TONES.get(line.severity, "wait"))
    still_open = f'<b class="bad-ink">{number(line.open)}</b>' if line.open else "0"
    meaning = f' <span class="sub">{MEANINGS.get(line.name, "")}</span>'
    return (
        f'<tr><td class="name">{_tag(line.name, line.severity)}{meaning}</td><td class="plot">{drawn}</td>'
        f"{cell('all', number(line.incidents))}{cell('open', still_open)}"
        f"{''.join(cell(name, number(line.during_maintenance)) for name in _apart(summary))}</tr>"
    )


def samples(summary: Summary) -> str:
    """The first incidents, each with the command that shows its whole story."""
    if not summary.incidents:
        return '<p class="none">None.</p>'
    shown = summary.incidents[:SAMPLES_MAX]
    total = sum(count.incidents for count in summary.classes)
    note = (
        f'<p class="sub">{number(len(shown))} of {number(total)}, open and severe ones first; all are in'
        " <code>incidents/</code> beside this page.</p>"
    )
    return f'{note}<ul class="incidents">{"".join(_incident(line) for line in shown)}</ul>'


def _incident(line: IncidentLine) -> str:
    is_closed = line.closed_at_ms is not None
    since = "open since" if not is_closed else "open from"
    until = f" to {moment(line.closed_at_ms)}" if is_closed else ""
    detail = f" · {short(line.detail, DETAIL_MAX)}" if line.detail else ""
    away = f" · during maintenance of {_names(line.maintenance_of)}" if line.maintenance_of else ""
    attempts = line.attempts or 0
    tries = f" · {number(attempts)} attempts" if attempts > 1 else ""
    return (
        f"<li><p>{_tag(line.name, 'closed' if is_closed else line.severity)}"
        f" {_party(line.from_agent, line.from_node)} → {_party(line.to_agent, line.to_node)}"
        f"{detail}{away}</p>"
        f'<p class="sub">sent {moment(line.created_at_ms)} · {since} {moment(line.opened_at_ms)}'
        f"{until}{tries}</p><code>{_where(line)}</code></li>"
    )


def _names(nodes: Iterable[str]) -> str:
    return " and ".join(short(node, NAME_MAX) for node in nodes)


def _where(line: IncidentLine) -> str:
    """How to look at it: a message can be traced, an outbox has a place."""
    return text(f"gateway trace {line.root_id}" if line.root_id else line.position or line.subject)


def _tag(name: str, tone: str) -> str:
    words = name.replace("_", " ")
    return f'<span class="tag {text(tone)}">{text(words[:1].upper() + words[1:])}</span>'


def _party(agent: str | None, node: str | None) -> str:
    name, place = short(agent or NOTHING, NAME_MAX), short(node or "nobody", NAME_MAX)
    return f'<b>{name}</b><span class="sub">@{place}</span>'
