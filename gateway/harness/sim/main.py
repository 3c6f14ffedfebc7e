"""``gateway harness sim``: from what was asked for to lines on a terminal."""

from collections.abc import Callable, Iterator

import msgspec

from gateway.errors import ConfigError
from gateway.harness.sim.plan import Fault
from gateway.harness.sim.runner import (
    Limits,
    Summary,
    replay_command,
    run_plan,
    run_seeds,
    summarise,
)
from gateway.harness.sim.scenario import text_of
from gateway.harness.sim.shrink import shrink
from gateway.harness.sim.world import Verdict

Print = Callable[[str], None]
_FINDINGS_SHOWN = 5
_ALSO = "+"
"""Before classes that are on beside those of the seed."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command."""

    seeds: int
    first: int
    nodes: int | None = None
    minutes: int | None = None
    messages: int | None = None
    faults: str | None = None
    shrink: bool = False
    stop: bool = False
    trace: bool = False
    as_json: bool = False


def run(wish: Wish, say: Print) -> bool:
    """Do it; whether every promise was kept. Raises ConfigError for a fault that does not exist."""
    also = wish.faults is not None and wish.faults.startswith(_ALSO)
    named = faults_of(wish.faults.removeprefix(_ALSO) if wish.faults is not None else None)
    limits = Limits(
        nodes=wish.nodes,
        minutes=wish.minutes,
        messages=wish.messages,
        faults=None if also else named,
        also=named or () if also else (),
    )
    seeds = range(wish.first, wish.first + wish.seeds)
    verdicts = run_seeds(seeds, limits, echo=say if wish.trace else None)
    if wish.stop:
        verdicts = _to_the_first_failure(verdicts)
    failed: list[Verdict] = []

    def tell(verdict: Verdict) -> None:
        if not verdict.ok:
            failed.append(verdict)
            if not wish.as_json:
                _report(verdict, say)

    summary = summarise(verdicts, tell)
    if failed and wish.shrink:
        _shrink(failed[0], say)
    say(msgspec.json.encode(summary).decode() if wish.as_json else _line(summary))
    return not summary.failed


def faults_of(text: str | None) -> tuple[Fault, ...] | None:
    """``a,b`` or ``none`` or ``all``. Raises ConfigError."""
    if text is None:
        return None
    names = {"none": [], "all": list(Fault)}.get(text, text.split(","))
    unknown = [name for name in names if name not in set(Fault)]
    if unknown:
        raise ConfigError(f"{unknown[0]!r} is no class of faults", hint=f"one of: {', '.join(Fault)}")
    return tuple(Fault(name) for name in names)


def _to_the_first_failure(verdicts: Iterator[Verdict]) -> Iterator[Verdict]:
    for verdict in verdicts:
        yield verdict
        if not verdict.ok:
            return


def _report(verdict: Verdict, say: Print) -> None:
    for finding in verdict.findings[:_FINDINGS_SHOWN]:
        say(f"seed {verdict.plan.seed}: {finding}")
    say(f"again: {replay_command(verdict.plan)}")


def _shrink(verdict: Verdict, say: Print) -> None:
    small = shrink(verdict.plan, run_plan)
    say(f"smallest: {replay_command(small)}")
    say(text_of(small, str(run_plan(small).findings[0]).partition("\n")[0]))


def _line(summary: Summary) -> str:
    verdict = f"{len(summary.failed)} failed" if summary.failed else "every promise kept"
    return (
        f"{summary.seeds} worlds from seed {summary.first}: {verdict}; "
        f"{summary.simulated_hours:.1f} simulated hours "
        f"({summary.hours_per_hour} an hour of one core), {summary.sent} sent, {summary.handed} handed over, "
        f"{summary.faults} faults, {summary.deaths} deaths; all at rest after {summary.slowest_rest_s:.0f} s"
    )
