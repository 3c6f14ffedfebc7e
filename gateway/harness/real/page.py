"""The report for people: one HTML page that needs nothing else, light and dark, from a phone's width up."""

from collections.abc import Iterable

from gateway.harness.real.limits import FAULTS_SHOWN
from gateway.harness.real.result import Result
from gateway.judging.percentiles import Percentiles
from spark.markup import duration, number, text

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #2a8a4a; --bad: #c33; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
.verdict { font-weight: 700; color: var(--bad) } .verdict.ok { color: var(--good) }
table { border-collapse: collapse; width: 100%; display: block; overflow-x: auto }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line) }
td.n { text-align: right; font-variant-numeric: tabular-nums }
pre { overflow-x: auto; padding: .6rem; border: 1px solid var(--line) }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(result: Result) -> str:
    """The whole document."""
    verdict = "every promise was kept" if result.ok else f"{len(result.faults)} promises were broken"
    return "\n".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>Gateway harness, seed {result.seed}</title><style>{_STYLE}</style></head><body>",
            f"<h1>Harness run, seed {result.seed}</h1>",
            f'<p class="verdict{" ok" if result.ok else ""}">{text(verdict)}</p>',
            f"<p>{text(_about(result))}</p><pre>{text(result.repeat)}</pre>",
            *_broken(result),
            "<h2>Messages</h2>",
            _table(_counts(result)),
            "<h2>Times</h2>",
            _table(_times(result)),
            "<h2>Faults injected</h2>",
            _table((fault, number(times)) for fault, times in result.injected.items()),
            *_skipped(result),
            "<h2>Gateways</h2>",
            _table(_gateways(result)),
            "<h2>Schedule</h2>",
            f"<pre>{text(chr(10).join(result.schedule)).replace(_NEW_LINE, chr(10))}</pre></body></html>",
        )
    )


def _about(result: Result) -> str:
    lasted = f"{result.duration_s} s under faults, {result.took_s:.0f} s in all"
    return f"{result.nodes} nodes, {lasted}, {result.rate:g} messages a second"


_NEW_LINE = text("\n")
"""The escaper shows control characters; these ones are ours."""


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f'<tr><th>{text(name)}</th><td class="n">{text(value)}</td></tr>' for name, value in rows)
    return f"<table>{cells}</table>"


def _broken(result: Result) -> Iterable[str]:
    if result.faults:
        yield "<h2>Broken promises</h2><table>"
        for fault in result.faults[:FAULTS_SHOWN]:
            yield f"<tr><th>{fault.kind}</th><td>{text(fault.subject)}</td><td>{text(fault.detail)}</td></tr>"
        yield f"</table><p>{number(len(result.faults))} in all. Homes and logs: {text(result.directory)}</p>"


def _counts(result: Result) -> Iterable[tuple[str, str]]:
    counts = result.counts
    for name in counts.__struct_fields__:
        yield name.replace("_", " "), number(getattr(counts, name))


def _times(result: Result) -> Iterable[tuple[str, str]]:
    yield "accepted", _three(result.times.accepted_ms)
    yield "processed or replied to", _three(result.times.processed_ms)


def _three(found: Percentiles | None) -> str:
    if found is None:
        return duration(None)
    return f"{duration(found.p50)}, 95 %: {duration(found.p95)}, 99 %: {duration(found.p99)}"


def _skipped(result: Result) -> Iterable[str]:
    if result.skipped:
        yield "<h2>Not possible on this machine</h2>"
        yield _table(result.skipped.items())


def _gateways(result: Result) -> Iterable[tuple[str, str]]:
    yield "starts", number(result.starts)
    for cause, times in result.ends.items():
        yield f"ended by themselves: {cause}", number(times)
    if result.report_agrees is not None:
        yield "Spark report", "tells the same" if result.report_agrees else "tells another story"
    for node, entries in result.entries.items():
        yield f"entries of {node}", number(entries)
