"""Threads as timelines: a message a row, on its way, waiting and in its turn, from left to right."""

from spark.limits import NAME_MAX
from spark.markup import duration, moment, number, short
from spark.summary import Thread, ThreadEvent

_FATES = {"dead_letter": "dead letter", "replied": "replied", "processed": "processed", "accepted": "waiting"}


def timelines(threads: tuple[Thread, ...], as_of_ms: int) -> str:
    """All threads, each on a scale of its own."""
    if not threads:
        return '<p class="none">No thread has an incident.</p>'
    legend = (
        '<p class="legend"><i class="travel"></i>on its way <i class="wait"></i>waiting for its agent'
        ' <i class="good"></i>turn <i class="bad"></i>given up or failed</p>'
    )
    return legend + "".join(_thread(thread, as_of_ms) for thread in threads)


def _thread(thread: Thread, as_of_ms: int) -> str:
    times = [at for event in thread.events for at in _times(event)]
    start, end = min(times, default=0), max(times, default=0)
    if any(_ends(event) is None for event in thread.events):
        end = max(end, min(as_of_ms, end + max(60_000, (end - start) // 4)))
    rows = "".join(_event(event, start, max(1, end - start)) for event in thread.events)
    name = short(thread.thread_id, NAME_MAX)
    count = f"{number(thread.incidents)} incidents, {number(thread.open)} open"
    return (
        f'<div class="thread"><h3>{name} <span class="sub">{count} · from {moment(start)},'
        f" {duration(end - start)}</span></h3>{rows}</div>"
    )


def _times(event: ThreadEvent) -> list[int]:
    times = (
        event.created_at_ms,
        event.accepted_at_ms,
        event.engaged_at_ms,
        event.done_at_ms,
        event.dead_at_ms,
    )
    return [at for at in times if at is not None]


def _ends(event: ThreadEvent) -> int | None:
    """When it was over; None while it is open."""
    if event.dead_at_ms is not None:
        return event.dead_at_ms
    return event.done_at_ms if event.kind != "reply" else event.accepted_at_ms


def _event(event: ThreadEvent, start: int, span: int) -> str:
    fate = "failed" if event.outcome == "failed" else _FATES.get(event.state, "on its way")
    bad = fate in {"dead letter", "failed"}
    stops = [event.created_at_ms, event.accepted_at_ms, event.engaged_at_ms, event.done_at_ms]
    drawn = "".join(
        _segment(tone, begin, until, start, span)
        for tone, begin, until in _segments(event, stops, start + span)
    )
    end = event.dead_at_ms if event.dead_at_ms is not None else event.done_at_ms
    if bad and end is not None:
        drawn += f'<circle class="bad" cx="{_x(end, start, span):.2f}%" cy="7" r="5"/>'
    source, target = event.from_agent or event.from_node, event.to_agent or event.to_node or "nobody"
    who = f"{short(source, NAME_MAX)} → {short(target, NAME_MAX)}"
    took = f" after {duration(end - event.created_at_ms)}" if end is not None else ""
    mark = '<span class="bad-ink" title="has an incident">●</span> ' if event.has_incident else ""
    return (
        f'<div class="life"><span class="who">{mark}{who}</span>'
        f'<svg width="100%" height="14" role="img" aria-label="{fate}{took}">{drawn}</svg>'
        f'<span class="fate{" bad-ink" if bad else ""}">{fate}{took}</span></div>'
    )


def _segments(event: ThreadEvent, stops: list[int | None], now: int) -> list[tuple[str, int, int]]:
    """``tone, begin, until`` of what is known; an open one lasts until the end of the drawing."""
    created, accepted, engaged, done = stops
    over = event.dead_at_ms if event.dead_at_ms is not None else now
    if created is None:
        return []
    if accepted is None:
        return [("travel", created, done if done is not None else over)]
    found = [("travel", created, accepted)]
    if event.kind == "reply":
        return found
    turn = engaged if engaged is not None else done
    found.append(("wait", accepted, turn if turn is not None else over))
    if turn is not None:
        found.append(("good", turn, done if done is not None else over))
    return found


def _segment(tone: str, begin: int, until: int, start: int, span: int) -> str:
    left, right = _x(begin, start, span), _x(max(begin, until), start, span)
    width = max(0.4, right - left)
    return f'<rect class="{tone}" x="{left:.2f}%" y="4" width="{width:.2f}%" height="6" rx="2"/>'


def _x(at: int, start: int, span: int) -> float:
    return 100 * max(0.0, min(1.0, (at - start) / span))
