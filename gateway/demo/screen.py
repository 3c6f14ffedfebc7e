"""The end of a run on the screen: what happened, whether it was right, and where to look on."""

import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.demo.limits import FAULTS_SHOWN, INCIDENTS_SHOWN, SLA_PROCESS_MS
from gateway.demo.result import Result
from gateway.fleet.process import GatewayProcess
from gateway.judging.percentiles import Percentiles
from outbox.ids import NodeId
from outbox.plaintext import one_line

_PLAIN_WIDTH = 120
"""Of output that goes to no terminal."""

_DETAIL_CHARS = 90


def show(result: Result) -> None:
    """Print a result as tables on stdout."""
    parts: list[RenderableType] = [
        Text(),
        _headline(result),
        _counts(result),
        _incidents(result),
        *_refusals(result),
        *_faults(result),
        _paths(result),
    ]
    _console().print(Group(*parts))


def show_json(result: Result) -> None:
    """Print a result as one JSON document on stdout."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(result), indent=2).decode() + "\n")


def show_logs(gateways: Iterable[GatewayProcess], logs: str) -> None:
    """After a failure: the last lines of each log, on stderr."""
    for gateway in gateways:
        lines = gateway.tail()
        sys.stderr.write(f"--- {gateway.node}: last {len(lines)} lines of its log\n")
        sys.stderr.writelines(f"{one_line(line, _PLAIN_WIDTH * 4)}\n" for line in lines)
    sys.stderr.write(f"--- all logs: {logs}\n")


def show_kept(
    gateways: Mapping[NodeId, GatewayProcess], runtime: Mapping[str, str], agents: tuple[str, str]
) -> None:
    """How to talk to a mesh that was left running, and how to stop it; for copying."""
    prefix = "".join(f"{name}={shlex.quote(value)} " for name, value in runtime.items())
    seed, *_, last = gateways.values()
    here, there = (f"{prefix}GATEWAY_HOME={_quoted(end.home.root)} {_program()}" for end in (seed, last))
    sender, recipient = agents
    pids = " ".join(str(process.pid) for process in gateways.values())
    lines = (
        "",
        "The mesh is still running. Talk to it:",
        f"  {here} send {recipient}@{last.node} 'hello' --as {sender} --wait-for accepted",
        f"  {there} inbox --as {recipient}",
        f"  {here} nodes",
        f"  {here} dead list",
        "Stop it:",
        f"  kill {pids}",
        "",
    )
    (sys.stderr if not sys.stdout.isatty() else sys.stdout).write("\n".join(lines))


def _program() -> str:
    """How this program is called from a shell: by its name where that finds it, else by its path."""
    installed = Path(sys.executable).with_name("gateway")
    found = shutil.which("gateway")
    return "gateway" if found is not None and Path(found) == installed else _quoted(installed)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)


def _headline(result: Result) -> Text:
    if result.ok:
        return Text(passed(reported=result.report_agrees is not None))
    return Text(f"FAILED: {len(result.faults)} promises were broken, see below.", style="bold red")


def passed(*, reported: bool) -> str:
    """What a good run may claim: of the report only when one was made."""
    if reported:
        return "PASSED: nothing was lost, nothing was engaged twice, and the report agrees with the journals."
    return "PASSED by the journals: nothing was lost, and nothing was engaged twice."


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _counts(result: Result) -> Group:
    counts = result.counts
    crash = (
        f"{result.crash.node} was killed with SIGKILL and was back after {result.crash.away_ms / 1000:.1f} s"
    )
    resumed = f"{counts.resumed} unfinished turns went back to the session that had them"
    turn_done = f"the agent's turn is done{_times(result.processed_ms)}"
    rows: tuple[tuple[str, int, str], ...] = (
        (
            "sent",
            counts.sent,
            f"{result.messages} messages and {result.replies} replies, on the sender's disk",
        ),
        ("accepted", counts.accepted, f"on the receiver's disk{_times(result.accepted_ms)}"),
        (
            "processed",
            counts.processed,
            f"{turn_done} (agents take their time)",
        ),
        ("replied", counts.replied, "answered by the agent"),
        ("failed", counts.failed, "the agent said that its turn failed"),
        ("waiting", counts.waiting, f"accepted, nobody took the turn within {SLA_PROCESS_MS // 1000} s"),
        ("dead letters", counts.dead_lettered, "given up, and both sides know"),
        ("refused", counts.refused, "not sent: nobody has that name"),
        ("lost", counts.lost, "sent, and neither ended nor explained"),
        ("engaged twice", counts.engaged_twice, "handed over after its ACK, or on two nodes"),
        ("resumed", counts.resumed, f"{crash}; {resumed}"),
    )
    table = _table("", "events", "")
    table.columns[1].justify = "right"
    for name, count, meaning in rows:
        must_be_none = name in {"lost", "engaged twice"}
        style = ("bold red" if count else "bold green") if must_be_none else ""
        table.add_row(Text(name, style), Text(str(count), style), meaning)
    return Group(Text(), table)


def _times(times: Percentiles | None) -> str:
    return f"; {times.p50} ms p50, {times.p95} ms p95, {times.p99} ms p99" if times is not None else ""


def _incidents(result: Result) -> Group:
    table = _table("incident", "from, to", "detail", "event")
    table.columns[0].no_wrap = table.columns[-1].no_wrap = True
    for incident in result.incidents[:INCIDENTS_SHOWN]:
        origin = "" if incident.planted else " (not planted)"
        detail = one_line(incident.detail, _DETAIL_CHARS) + origin
        table.add_row(incident.name, incident.what, detail, incident.event_id)
    agreed = {
        True: "Incidents. The Spark report found exactly these, and counted the same events.",
        False: "Incidents in the journals. The Spark report differs, see below.",
        None: "Incidents in the journals; no report was made.",
    }[result.report_agrees]
    left = len(result.incidents) - INCIDENTS_SHOWN
    more = [Text(f"and {left} more that nobody planted: turns that ended late")] if left > 0 else []
    return Group(Text(), Text(agreed), table, *more)


def _refusals(result: Result) -> Iterable[Text]:
    for refusal in result.refused:
        yield Text(f"\nRefused as planted: {one_line(refusal.what, 200)}; {one_line(refusal.hint, 200)}")


def _faults(result: Result) -> Iterable[RenderableType]:
    if not result.faults:
        return
    table = _table("fault", "about", "detail")
    for fault in result.faults[:FAULTS_SHOWN]:
        table.add_row(fault.kind, one_line(fault.subject, 80), one_line(fault.detail, 200))
    yield Text()
    yield table
    if len(result.faults) > FAULTS_SHOWN:
        yield Text(f"and {len(result.faults) - FAULTS_SHOWN} more")


def _paths(result: Result) -> Group:
    paths = result.paths
    shown = (("report", paths.report), ("lake", paths.lake), ("logs", paths.logs))
    lines = [
        Text(f"{name:<7} {path}", no_wrap=True, overflow="ignore") for name, path in shown if path is not None
    ]
    return Group(Text(), *lines)
