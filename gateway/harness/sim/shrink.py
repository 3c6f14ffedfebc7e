"""A failing world made smaller: fewer faults, messages, minutes and nodes, the same broken promise."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from gateway.harness.sim.findings import Promise
from gateway.harness.sim.plan import Plan
from gateway.harness.sim.world import Verdict

_NODES_MIN = 2


def shrink(plan: Plan, run: Callable[[Plan], Verdict]) -> Plan:
    """The smallest world found that breaks the same promise first; ``plan`` must fail."""
    broken = _first(run(plan))
    assert broken is not None, "only a failing world can be made smaller"
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(plan):
            if _first(run(smaller)) is broken:
                plan, progress = smaller, True
                break
    return plan


def _first(verdict: Verdict) -> Promise | None:
    return verdict.findings[0].promise if verdict.findings else None


def _smaller(plan: Plan) -> Iterator[Plan]:
    half = len(plan.faults) // 2
    if half > 1:
        yield replace(plan, faults=plan.faults[:half])
        yield replace(plan, faults=plan.faults[half:])
    for fault in plan.faults:
        yield replace(plan, faults=tuple(other for other in plan.faults if other is not fault))
    if plan.minutes > 1:
        yield replace(plan, minutes=plan.minutes // 2)
        yield replace(plan, minutes=plan.minutes - 1)
    if plan.messages > 1:
        yield replace(plan, messages=plan.messages // 2)
        yield replace(plan, messages=plan.messages - 1)
    if plan.nodes > _NODES_MIN:
        yield replace(plan, nodes=plan.nodes - 1)
