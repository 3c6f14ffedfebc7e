"""The end of a run on the screen."""

import sys

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.harness.real.limits import FAULTS_SHOWN
from gateway.harness.real.result import Result
from outbox.plaintext import one_line

_PLAIN_WIDTH = 120
_DETAIL_CHARS = 160


def show(result: Result) -> None:
    """Print a result as tables on stdout."""
    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    console.print(_numbers(result))
    for name, reason in result.skipped.items():
        console.print(Text(f"not injected: {name} ({reason})"))
    for fault in result.faults[:FAULTS_SHOWN]:
        detail = one_line(fault.detail, _DETAIL_CHARS)
        console.print(Text(f"{fault.kind}: {fault.subject}: {detail}", style="red"), soft_wrap=True)
    if result.ok:
        console.print(Text("every promise was kept", style="bold green"))
    else:
        console.print(Text(f"{len(result.faults)} broken promises; again: {result.repeat}", style="bold red"))
        console.print(Text(f"homes and logs: {result.directory}"), soft_wrap=True)
    console.print(Text(f"report: {result.directory}/report.html"), soft_wrap=True)


def show_json(result: Result) -> None:
    """One document on stdout."""
    sys.stdout.write(msgspec.json.encode(result).decode() + "\n")


def _numbers(result: Result) -> Table:
    table = Table(box=SIMPLE_HEAD, show_header=False)
    counts = result.counts
    for name in counts.__struct_fields__:
        table.add_row(name.replace("_", " "), str(getattr(counts, name)))
    for name, found in (("accepted", result.times.accepted_ms), ("ended", result.times.processed_ms)):
        if found is not None:
            table.add_row(f"{name} after", f"{found.p50} ms, 95 %: {found.p95} ms, 99 %: {found.p99} ms")
    table.add_row("faults", ", ".join(f"{times} {fault}" for fault, times in result.injected.items()))
    ends = ", ".join(f"{times} {cause}" for cause, times in result.ends.items())
    table.add_row("ended by themselves", ends or "none")
    if result.report_agrees is not None:
        table.add_row("Spark report", "tells the same" if result.report_agrees else "tells another story")
    table.add_row("seed, seconds", f"{result.seed}, {result.took_s:.0f}")
    return table
