"""The report for people: one HTML page that needs nothing else.

No script and no request (the page forbids both to itself), light and dark, from a phone's width up.
Every name and text in it comes from strangers and goes through ``markup.text``.
"""

from importlib.resources import files

from spark.charts import columns, flow
from spark.incidentlist import classes, samples
from spark.latencies import slowest, stages
from spark.limits import DETAIL_MAX, MAINTENANCES_NAMED, NAME_MAX, NAMES_MAX
from spark.markup import moment, number, short, text
from spark.scorecard import scorecard
from spark.summary import Maintenance, Summary
from spark.timelines import timelines

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render(summary: Summary) -> str:
    """The whole page."""
    style = files("spark").joinpath("report.css").read_text("utf-8")
    body = "".join(
        (
            _head(summary),
            _notices(summary),
            _cards(summary),
            _section("Objectives", scorecard(summary.standings)),
            _section("Incidents by class and time", classes(summary)),
            '<div class="grid2">',
            _section("Messages over time", columns(summary.buckets, summary.bucket_ms)),
            _section("Flow between nodes", flow(summary.of("nodes"))),
            "</div>",
            _section("Latency", stages(summary)),
            '<div class="grid2">',
            _section("Slowest routes", slowest(summary.of("route"), "route")),
            _section("Slowest agents", slowest(summary.of("agent"), "agent")),
            "</div>",
            _capabilities(summary),
            _section("Worst threads", timelines(summary.threads, summary.as_of_ms)),
            _section("Incidents", samples(summary)),
        )
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Gateway Mesh SLA report</title><style>{style}</style></head>"
        f"<body>{body}</main></body></html>\n"
    )


def _section(title: str, body: str) -> str:
    name = title.lower().replace(" ", "-")
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>{body}</section>'


def _capabilities(summary: Summary) -> str:
    """Nothing where nobody asks for one."""
    asked = tuple(line for line in summary.of("capability") if line.source)
    return _section("Slowest capabilities", slowest(asked, "capability")) if asked else ""


def _head(summary: Summary) -> str:
    events = sum(stream.events for stream in summary.streams)
    nodes = _names(tuple(stream.node for stream in summary.streams)) or "no node"
    return (
        f'<header><h1>SLA report</h1><p class="verdict {_tone(summary)}">{_verdict(summary)}</p>'
        f'<p class="sub">As of {moment(summary.as_of_ms)} · {number(events)} events of {nodes}</p>'
        "</header><main>"
    )


def _tone(summary: Summary) -> str:
    missed = any(not standing.met for standing in summary.standings)
    return "alarm" if missed or summary.open_incidents else "fine"


def _verdict(summary: Summary) -> str:
    missed = sum(not standing.met for standing in summary.standings)
    goals = f"{missed} of {len(summary.standings)} objectives missed" if missed else "Every objective met"
    if not summary.open_incidents:
        return f"{goals}, no open incident."
    plural = "s" if summary.open_incidents > 1 else ""
    return f"{goals}, {number(summary.open_incidents)} open incident{plural}."


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
    forgetful = tuple(stream for stream in summary.streams if stream.forgotten)
    if forgetful:
        notices.append(
            f"Forgotten before they were collected: {number(sum(s.forgotten for s in forgetful))} events of"
            f" {_names(tuple(s.node for s in forgetful))}. Collect more often than they prune."
        )
    if summary.maintenances:
        notices.append(
            f"Announced maintenance: {_maintenances(summary)}. {number(summary.during_maintenance)} incidents"
            " of waiting for these nodes opened meanwhile; they are counted with the others, and apart."
        )
    flagged = sum(stream.flagged for stream in summary.streams)
    if flagged:
        notices.append(
            f"{number(flagged)} doubtful events; the column <code>flags</code> of the lake says why."
        )
    return "".join(f'<p class="notice">{notice}</p>' for notice in notices)


def _maintenances(summary: Summary) -> str:
    latest = summary.maintenances[:MAINTENANCES_NAMED]
    rest = len(summary.maintenances) - len(latest)
    more = f" and {number(rest)} before" if rest else ""
    return "; ".join(map(_maintenance, latest)) + more


def _maintenance(said: Maintenance) -> str:
    until = f"to {moment(said.end_at_ms)}" if said.end_at_ms is not None else "and not over"
    why = f" ({short(said.reason, DETAIL_MAX)})" if said.reason else ""
    return f"{short(said.node, NAME_MAX)} from {moment(said.start_at_ms)} {until}{why}"


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
        f'<li class="card {tone}"><b>{number(value)}</b> <span>{name}</span></li>'
        for name, value, tone in cards
    )
    return f'<ul class="cards">{inner}</ul>'
