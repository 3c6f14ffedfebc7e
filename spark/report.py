"""The report for people: one HTML page that needs nothing else.

No script and no request (the page forbids both to itself), light and dark, from a phone's width up.
Every name and text in it comes from strangers and goes through ``markup.text``.
"""

from importlib.resources import files

from spark.charts import bar, columns, flow, latency_axis, latency_range
from spark.limits import DETAIL_MAX, NAMES_MAX, SAMPLES_MAX
from spark.markup import NOTHING, duration, moment, number, share, text
from spark.summary import ClassCount, IncidentLine, LatencyLine, Summary

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_WORDS = {
    "never_accepted": "Never accepted",
    "accepted_not_processed": "Accepted, not processed in time",
    "dead_letter": "Dead letter",
    "turn_failed": "Turn failed",
}

_TONES = {"critical": "bad", "major": "wait"}


def render(summary: Summary) -> str:
    """The whole page."""
    style = files("spark").joinpath("report.css").read_text("utf-8")
    body = "".join(
        (
            _head(summary),
            _notices(summary),
            _cards(summary),
            '<div class="grid2">',
            _section("Promises", _promises(summary)),
            _section("Incidents by class", _classes(summary.classes)),
            _section("Messages over time", columns(summary.buckets, summary.bucket_ms)),
            _section("Flow between nodes", flow(summary.of("nodes"))),
            "</div>",
            _section("Latency", _stages(summary)),
            '<div class="grid2">',
            _section("Slowest routes", _slowest(summary.of("route"), "route")),
            _section("Slowest agents", _slowest(summary.of("agent"), "agent")),
            "</div>",
            _section("Incidents", _samples(summary)),
        )
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Gateway Mesh report</title><style>{style}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{body}</section>"


def _head(summary: Summary) -> str:
    events = sum(stream.events for stream in summary.streams)
    nodes = _names(tuple(stream.node for stream in summary.streams))
    return (
        f"<header><h1>Gateway Mesh report</h1>"
        f'<p class="sub">As of {moment(summary.as_of_ms)} · {number(events)} events of {nodes}</p></header>'
    )


def _names(nodes: tuple[str, ...]) -> str:
    more = f" and {number(len(nodes) - NAMES_MAX)} more" if len(nodes) > NAMES_MAX else ""
    return ", ".join(text(node) for node in nodes[:NAMES_MAX]) + more


def _notices(summary: Summary) -> str:
    notices = []
    if summary.missing_nodes:
        notices.append(
            f"Not collected: {_names(summary.missing_nodes)}. What these nodes accepted or answered cannot"
            " be seen here, so messages to them may be shown as never accepted."
        )
    flagged = sum(stream.flagged for stream in summary.streams)
    if flagged:
        notices.append(
            f"{number(flagged)} doubtful events; the column <code>flags</code> of the lake says why."
        )
    return "".join(f'<section class="notice"><p>{notice}</p></section>' for notice in notices)


def _cards(summary: Summary) -> str:
    count = {line.source: line for line in summary.of("kind")}
    answered = sum(
        s.events for s in summary.states if s.kind == "message" and s.state in {"processed", "replied"}
    )
    dead = sum(s.events for s in summary.states if s.state == "dead_letter")
    sent = count["message"].events if "message" in count else 0
    cards = (
        ("messages", sent, ""),
        ("answered", answered, "fine" if answered == sent else ""),
        ("replies", count["reply"].events if "reply" in count else 0, ""),
        ("tried again", sum(line.retried for line in count.values()), ""),
        ("dead letters", dead, "alarm" if dead else "fine"),
        ("open incidents", summary.open_incidents, "alarm" if summary.open_incidents else "fine"),
    )
    inner = "".join(
        f'<div class="card {tone}"><b>{number(value)}</b><span>{name}</span></div>'
        for name, value, tone in cards
    )
    return f'<div class="cards">{inner}</div>'


def _promises(summary: Summary) -> str:
    rows = []
    for line in summary.of("kind"):
        threshold = summary.thresholds.get(line.source)
        if threshold is None:
            continue
        promise = f"{text(line.source)} accepted within {duration(threshold.accept_ms)}"
        rows.append(_promise(promise, line.accepted_in_time, line.accept_judged))
        if threshold.process_ms is not None:
            promise = f"{text(line.source)} answered within {duration(threshold.process_ms)}"
            rows.append(_promise(promise, line.processed_in_time, line.process_judged))
    head = '<tr><th>promise</th><th class="plot"></th><th class="n">kept</th><th class="n">of</th></tr>'
    return _table(head, rows, "No messages.")


def _promise(promise: str, kept: int, judged: int) -> str:
    part = kept / judged if judged else 0
    tone = "good" if kept == judged else "wait" if part >= 0.95 else "bad"
    return (
        f'<tr><td class="name">{promise}</td><td class="plot">{bar(part, tone)}</td>'
        f"{_cell('kept', share(kept, judged))}{_cell('of', number(judged))}</tr>"
    )


def _classes(classes: tuple[ClassCount, ...]) -> str:
    top = max((count.incidents for count in classes), default=1)
    rows = [
        f'<tr><td class="name">{_tag(count.name, count.severity)}</td>'
        f'<td class="plot">{bar(count.incidents / top, _TONES.get(count.severity, "wait"))}</td>'
        f"{_cell('all', number(count.incidents))}{_cell('open', number(count.open))}</tr>"
        for count in classes
    ]
    head = '<tr><th>class</th><th class="plot"></th><th class="n">all</th><th class="n">open</th></tr>'
    return _table(head, rows, "None: every promise was kept.")


def _stages(summary: Summary) -> str:
    rows = []
    for line in summary.of("kind"):
        stages = (("accepted", line.accept_ms), ("processed", line.process_ms), ("replied", line.reply_ms))
        rows += [
            _latency_row(f"{text(line.source)} → {word}", percentiles)
            for word, percentiles in stages
            if percentiles
        ]
    note = '<p class="sub">From creation. Dot: median; thick: to the 95th percentile; thin: to the 99th.</p>'
    return _latency_table("step", rows) + note


def _slowest(lines: tuple[LatencyLine, ...], dimension: str) -> str:
    rows = []
    for line in lines:
        name = text(line.source or NOTHING)
        if dimension == "route":
            name += f" → {text(line.target or NOTHING)}"
        percentiles = line.process_ms or line.accept_ms
        if percentiles:
            what = "processed" if line.process_ms else "accepted"
            rows.append(
                _latency_row(f'{name} <span class="sub">{what}, {number(line.events)}</span>', percentiles)
            )
    return _latency_table(dimension, rows)


def _latency_row(name: str, percentiles: tuple[int, int, int]) -> str:
    numbers = "".join(
        _cell(what, duration(ms)) for what, ms in zip(("p50", "p95", "p99"), percentiles, strict=True)
    )
    return f'<tr><td class="name">{name}</td><td class="plot">{latency_range(percentiles)}</td>{numbers}</tr>'


def _latency_table(what: str, rows: list[str]) -> str:
    head = (
        f'<tr><th>{what}</th><th class="plot">{latency_axis()}</th>'
        '<th class="n">p50</th><th class="n">p95</th><th class="n">p99</th></tr>'
    )
    return _table(head, rows, "Nothing was measured.")


def _cell(what: str, value: str) -> str:
    """A number; on a phone it stands below its name instead of in a column."""
    return f'<td class="n" data-k="{what}">{value}</td>'


def _table(head: str, rows: list[str], nothing: str) -> str:
    if not rows:
        return f'<p class="none">{nothing}</p>'
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def _samples(summary: Summary) -> str:
    if not summary.incidents:
        return '<p class="none">None.</p>'
    shown = summary.incidents[:SAMPLES_MAX]
    total = sum(count.incidents for count in summary.classes)
    note = f'<p class="sub">{number(len(shown))} of {number(total)}; all are in <code>incidents/</code>.</p>'
    return note + "".join(_incident(line) for line in shown)


def _incident(line: IncidentLine) -> str:
    tone = "closed" if line.closed_at_ms is not None else line.severity
    until = f" · closed {moment(line.closed_at_ms)}" if line.closed_at_ms is not None else ""
    detail = f" · {text(line.detail[:DETAIL_MAX])}" if line.detail else ""
    tries = f" · {number(line.attempts)} attempts" if line.attempts > 1 else ""
    return (
        f'<div class="incident"><p>{_tag(line.name, tone)} {_party(line.from_agent, line.from_node)}'
        f" → {_party(line.to_agent, line.to_node)}{detail}</p>"
        f'<p class="sub">sent {moment(line.created_at_ms)} · since {moment(line.opened_at_ms)}'
        f"{until}{tries}</p>"
        f"<code>gateway trace {text(line.root_id)}</code></div>"
    )


def _tag(name: str, tone: str) -> str:
    return f'<span class="tag {text(tone)}">{_WORDS.get(name, text(name))}</span>'


def _party(agent: str | None, node: str | None) -> str:
    return f'<b>{text(agent or NOTHING)}</b><span class="sub">@{text(node or "nobody")}</span>'
