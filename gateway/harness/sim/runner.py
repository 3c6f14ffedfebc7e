"""Many worlds, one after the other, and what they have shown."""

import gc
from collections.abc import Callable, Iterator
from time import process_time

import msgspec
from msgspec.structs import replace

from gateway.harness.sim.plan import Fault, Plan, draw_plan
from gateway.harness.sim.world import Verdict, World


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller wants other than the seed would have it; None leaves it to the seed."""

    nodes: int | None = None
    minutes: int | None = None
    messages: int | None = None
    faults: tuple[Fault, ...] | None = None
    also: tuple[Fault, ...] = ()
    """Classes that are on in every world, whatever the seed says."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of many worlds came to."""

    first: int
    seeds: int
    failed: tuple[int, ...]
    simulated_hours: float
    hours_per_hour: float
    """Simulated hours in an hour of one core, whatever else that core had to do."""
    sent: int
    handed: int
    deaths: int
    faults: int
    slowest_rest_s: float
    """Longest time from the end of faults to the end of everything."""


def plan_of(seed: int, limits: Limits) -> Plan:
    """The seed's world, within the caller's limits."""
    wanted = {name: value for name, value in msgspec.structs.asdict(limits).items() if value is not None}
    on = {*wanted.pop("also")}
    plan = replace(draw_plan(seed), **wanted)
    return replace(plan, faults=tuple(fault for fault in Fault if fault in {*plan.faults, *on}))


def run_plan(plan: Plan, *, echo: Callable[[str], None] | None = None) -> Verdict:
    """One world. The collector of garbage waits, so that it cannot be part of the story."""
    gc.disable()
    try:
        return World(plan, echo=echo).run()
    finally:
        gc.enable()


def run_seeds(
    seeds: range, limits: Limits, *, echo: Callable[[str], None] | None = None
) -> Iterator[Verdict]:
    """Their verdicts, in order."""
    gc.collect()
    gc.freeze()  # the program itself need not be looked through after each world
    for seed in seeds:
        yield run_plan(plan_of(seed, limits), echo=echo)
        gc.collect()


def summarise(verdicts: Iterator[Verdict], tell: Callable[[Verdict], None]) -> Summary:
    """Run all of them, telling of each."""
    begun = process_time()
    done: list[Verdict] = []
    for verdict in verdicts:
        tell(verdict)
        done.append(replace(verdict, trace=()))
    simulated_h = sum(verdict.simulated_s for verdict in done) / 3600
    return Summary(
        first=done[0].plan.seed if done else 0,
        seeds=len(done),
        failed=tuple(verdict.plan.seed for verdict in done if not verdict.ok),
        simulated_hours=round(simulated_h, 2),
        hours_per_hour=round(simulated_h / ((process_time() - begun) / 3600)),
        sent=sum(verdict.sent for verdict in done),
        handed=sum(verdict.handed for verdict in done),
        deaths=sum(verdict.deaths for verdict in done),
        faults=sum(verdict.faults for verdict in done),
        slowest_rest_s=max((verdict.rest_s for verdict in done), default=0.0),
    )


def replay_command(plan: Plan) -> str:
    """The one command that shows a world again."""
    drawn = draw_plan(plan.seed)
    words = [f"gateway harness sim --seeds 1 --from {plan.seed} --trace"]
    names = [n for n in ("nodes", "minutes", "messages") if getattr(plan, n) != getattr(drawn, n)]
    words += [f"--{name} {getattr(plan, name)}" for name in names]
    if plan.faults != drawn.faults:
        words.append(f"--faults {','.join(plan.faults) or 'none'}")
    return " ".join(words)
