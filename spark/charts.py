"""Plots as inline SVG, made by hand: no library, no script, no request.

Text is HTML beside the drawings and positions are percentages, so that a plot fits any width and the letters
keep their size. Colours come from the style sheet, which knows light and dark.
"""

from collections.abc import Iterable, Sequence
from math import log10

from spark.limits import NAME_MAX
from spark.markup import clock, duration, number, short, text
from spark.summary import Bucket, LatencyLine

_MARKS = {10: "10 ms", 100: "100 ms", 1000: "1 s", 10_000: "10 s", 100_000: "100 s"}
"""The latency scale, in milliseconds: from a loopback to a long turn of an agent."""

_SCALE_MS_MAX = 1_000_000


def bar(part: float, tone: str) -> str:
    """A bar over a fraction of its place."""
    width = 100 * max(0.0, min(1.0, part))
    return (
        '<svg class="bar" width="100%" height="8" aria-hidden="true">'
        '<rect class="track" width="100%" height="8" rx="4"/>'
        f'<rect class="{tone}" width="{width:.2f}%" height="8" rx="4"/></svg>'
    )


def columns(buckets: Sequence[Bucket], width_ms: int) -> str:
    """Messages over time: stacked columns."""
    if not buckets:
        return '<p class="none">No dated messages.</p>'
    top = max(bucket.done + bucket.waiting + bucket.failed for bucket in buckets)
    drawn = "".join(_column(place, bucket, top, width_ms) for place, bucket in enumerate(buckets))
    ends = dict.fromkeys((buckets[0].start_ms, buckets[len(buckets) // 2].start_ms, buckets[-1].start_ms))
    labels = "".join(f"<span>{clock(start, width_ms)}</span>" for start in ends)
    return (
        f'<div class="scale"><span>{number(top)}</span><span>a column: {duration(width_ms)}</span></div>'
        f'<svg class="columns" viewBox="0 0 {len(buckets)} 100" preserveAspectRatio="none" role="img"'
        f' aria-label="Messages over time">{drawn}</svg>'
        f'<div class="scale">{labels}</div>'
        '<p class="legend"><i class="good"></i>answered <i class="wait"></i>waiting'
        ' <i class="bad"></i>failed</p>'
    )


def _column(place: int, bucket: Bucket, top: int, width_ms: int) -> str:
    parts = (("good", bucket.done), ("wait", bucket.waiting), ("bad", bucket.failed))
    title = f"{clock(bucket.start_ms, width_ms)}: " + ", ".join(
        f"{count} {word}" for (_, count), word in zip(parts, ("answered", "waiting", "failed"), strict=True)
    )
    drawn, base = [f"<title>{title}</title>"], 100.0
    for tone, count in parts:
        if count:
            height = 100 * count / top
            base -= height
            drawn.append(
                f'<rect class="{tone}" x="{place + 0.08:.2f}" y="{base:.2f}"'
                f' width=".84" height="{height:.2f}"/>'
            )
    return f"<g>{''.join(drawn)}</g>"


def strip(counts: Sequence[int], starts: Sequence[int], width_ms: int, tone: str) -> str:
    """How many of one thing began in each slice of time: a small row of columns on its own scale."""
    top = max(counts, default=0)
    if top == 0:
        return ""
    drawn = "".join(
        f'<rect class="{tone}" x="{place + 0.08:.2f}" y="{28 - 28 * _height(count, top):.1f}" width=".84"'
        f' height="{28 * _height(count, top):.1f}">'
        f"<title>{clock(start, width_ms)}: {number(count)}</title></rect>"
        for place, (count, start) in enumerate(zip(counts, starts, strict=True))
        if count
    )
    return (
        f'<svg class="strip" viewBox="0 0 {len(counts)} 28" preserveAspectRatio="none" role="img"'
        f' aria-label="at most {number(top)} a column">{drawn}</svg>'
    )


def _height(count: int, top: int) -> float:
    """Of 1; what is there at all is seen."""
    return max(0.12, count / top)


def _x(ms: int) -> float:
    """Place on the latency scale, in percent."""
    span = log10(_SCALE_MS_MAX)
    return 100 * max(0.0, min(1.0, log10(max(ms, 1)) / span))


def latency_axis() -> str:
    """The labels above latency ranges."""
    marks = "".join(f'<span style="left:{_x(ms):.1f}%">{name}</span>' for ms, name in _MARKS.items())
    return f'<div class="axis">{marks}</div>'


def latency_range(percentiles: tuple[int, int, int] | None) -> str:
    """From the median (dot) over the 95th (end of the bar) to the 99th percentile (end of the line)."""
    if percentiles is None:
        return ""
    p50, p95, p99 = (_x(ms) for ms in percentiles)
    return (
        f'<svg class="range" width="100%" height="18" aria-hidden="true">'
        f'<line class="far" x1="{p50:.2f}%" x2="{p99:.2f}%" y1="9" y2="9"/>'
        f'<line class="near" x1="{p50:.2f}%" x2="{p95:.2f}%" y1="9" y2="9"/>'
        f'<circle class="dot" cx="{p50:.2f}%" cy="9" r="5"/></svg>'
    )


def flow(lines: Sequence[LatencyLine]) -> str:
    """Messages between nodes: ribbons from senders at the left to receivers at the right."""
    if not lines:
        return '<p class="none">No messages.</p>'
    named = [(line.source, line.target or "nobody", line.events) for line in lines]
    left = _stack((source, events) for source, _, events in named)
    right = _stack((target, events) for _, target, events in named)
    ribbons = []
    out_at, in_at = {name: start for name, (start, _) in left.items()}, {n: s for n, (s, _) in right.items()}
    total = sum(events for _, _, events in named)
    for source, target, events in sorted(named):
        size = 84 * events / total
        tone = "self" if source == target else "other"
        ribbons.append(_ribbon(out_at[source], in_at[target], size, tone, f"{source} → {target}: {events}"))
        out_at[source] += size
        in_at[target] += size
    return (
        '<div class="scale"><span>from</span><span>to</span></div>'
        f'<div class="flow">{_names(left)}<svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img"'
        f' aria-label="Messages between nodes">{"".join(ribbons)}</svg>{_names(right)}</div>'
    )


def _stack(parts: Iterable[tuple[str, int]]) -> dict[str, tuple[float, int]]:
    """Name → where its block begins (of 100) and its sum; blocks share 84, gaps the rest."""
    sums: dict[str, int] = {}
    for name, events in parts:
        sums[name] = sums.get(name, 0) + events
    total, gap, at = sum(sums.values()), 16 / max(1, len(sums)), 0.0
    placed = {}
    for name in sorted(sums):
        placed[name] = (at + gap / 2, sums[name])
        at += gap + 84 * sums[name] / total
    return placed


def _ribbon(start: float, end: float, size: float, tone: str, title: str) -> str:
    path = (
        f"M0 {start:.2f}C50 {start:.2f} 50 {end:.2f} 100 {end:.2f}"
        f"V{end + size:.2f}C50 {end + size:.2f} 50 {start + size:.2f} 0 {start + size:.2f}Z"
    )
    return f'<path class="{tone}" d="{path}"><title>{text(title)}</title></path>'


def _names(stack: dict[str, tuple[float, int]]) -> str:
    total = sum(events for _, events in stack.values())
    labels = "".join(
        f'<span style="top:{start + 42 * events / total:.1f}%"><i>{short(name, NAME_MAX)}</i>'
        f"<b>{number(events)}</b></span>"
        for name, (start, events) in stack.items()
    )
    return f'<div class="names">{labels}</div>'
