"""How long things took: percentiles of each step, and the slowest routes and agents."""

from spark.charts import latency_axis, latency_range
from spark.limits import NAME_MAX
from spark.markup import NOTHING, cell, duration, number, short, table, text
from spark.summary import LatencyLine, Summary

Percentiles = tuple[int, int, int]


def stages(summary: Summary) -> str:
    """From creation to each step, by kind."""
    rows = []
    for line in summary.of("kind"):
        steps = (("accepted", line.accept_ms), ("processed", line.process_ms), ("replied", line.reply_ms))
        rows += [_row(f"{text(line.source)} → {word}", measured) for word, measured in steps if measured]
    note = '<p class="sub">From creation. Dot: median; thick: to the 95th percentile; thin: to the 99th.</p>'
    return _table("step", rows) + note


def slowest(lines: tuple[LatencyLine, ...], dimension: str) -> str:
    """Routes, agents or capabilities, the slowest first."""
    rows = []
    for line in lines:
        name = short(line.source or NOTHING, NAME_MAX)
        if dimension == "route":
            name += f" → {short(line.target or NOTHING, NAME_MAX)}"
        measured = line.process_ms or line.accept_ms
        if measured:
            what = "" if line.process_ms else ", accepted"
            rows.append(
                _row(f'{name} <span class="sub">{number(line.events)} messages{what}</span>', measured)
            )
    note = '<p class="sub">From creation until processed; until accepted where that is said.</p>'
    return _table(dimension, rows) + (note if rows else "")


def _row(name: str, measured: Percentiles) -> str:
    numbers = "".join(
        cell(what, duration(ms)) for what, ms in zip(("p50", "p95", "p99"), measured, strict=True)
    )
    return f'<tr><td class="name">{name}</td><td class="plot">{latency_range(measured)}</td>{numbers}</tr>'


def _table(what: str, rows: list[str]) -> str:
    return table((what, (latency_axis(), "plot"), "p50", "p95", "p99"), rows, "Nothing was measured.")
