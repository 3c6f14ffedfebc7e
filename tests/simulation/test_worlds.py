"""Worlds from seeds: every promise kept, the same trace from the same seed, failures that can be replayed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.plan import ON_REQUEST, Fault, Plan, draw_plan
from gateway.harness.sim.runner import Limits, plan_of, replay_command, run_plan, run_seeds
from gateway.harness.sim.shrink import shrink
from gateway.harness.sim.world import REST_WITHIN_S, Verdict

ROOT = Path(__file__).parents[2]
DIGEST = """
from gateway.harness.sim.plan import Fault
from gateway.harness.sim.runner import Limits, plan_of, run_plan
print(run_plan(plan_of({seed}, Limits(minutes=4, also=({also})))).digest)
"""


@pytest.mark.parametrize("first", range(5_000, 5_012, 4))
def test_every_promise_is_kept(first: int) -> None:
    for verdict in run_seeds(range(first, first + 4), Limits()):
        assert verdict.ok, [*map(str, verdict.findings), replay_command(verdict.plan)]
        assert verdict.rest_s < REST_WITHIN_S
        assert verdict.sent > 0


@pytest.mark.parametrize("fault", [Fault.APART, Fault.LYING_RELAY, Fault.OLD_VERSION])
def test_every_promise_is_kept_between_nodes_that_never_meet_or_are_older(fault: Fault) -> None:
    for seed in (7_001, 7_002):
        plan = plan_of(seed, Limits(minutes=3, messages=30))
        others = (Fault.APART, Fault.LYING_RELAY, Fault.OLD_VERSION)
        faults = (*(known for known in plan.faults if known not in others), fault)
        verdict = run_plan(replace(plan, faults=faults))
        assert verdict.ok, [*map(str, verdict.findings), replay_command(verdict.plan)]
        assert verdict.handed > 0


def test_every_promise_is_kept_where_fallbacks_answer() -> None:
    faults = (Fault.RESET, Fault.CRASH, Fault.FALLBACK)
    for verdict in run_seeds(range(4), Limits(faults=faults)):
        assert verdict.ok, [*map(str, verdict.findings), replay_command(verdict.plan)]
        assert verdict.handed > 0


def test_who_is_refused_until_it_is_brought_up_to_date_has_everything_then() -> None:
    for verdict in run_seeds(range(3), Limits(faults=(Fault.RESET, Fault.CRASH, Fault.REFUSED), minutes=5)):
        assert verdict.ok, [*map(str, verdict.findings), replay_command(verdict.plan)]
    assert any(" version " in line for line in verdict.trace), "somebody was refused"


def test_what_a_report_tells_is_known_to_all_once_and_over_when_it_is() -> None:
    for verdict in run_seeds(range(3), Limits(faults=(Fault.RESET, Fault.CRASH, Fault.REPORTS), minutes=5)):
        assert verdict.ok, [*map(str, verdict.findings), replay_command(verdict.plan)]
        assert any(" reported " in line for line in verdict.trace)


def test_what_an_honest_node_that_was_put_out_is_owed_ends_and_nobody_else_loses_anything() -> None:
    for verdict in run_seeds(range(3), Limits(faults=(Fault.RESET, Fault.CRASH, Fault.EXPEL), minutes=6)):
        assert verdict.ok, [*map(str, verdict.findings), replay_command(verdict.plan)]
        assert any(" revokes n" in line for line in verdict.trace)
        assert verdict.handed > 0


def test_what_is_announced_of_maintenance_is_known_to_all_as_it_was_said_last() -> None:
    faults = (Fault.RESET, Fault.CRASH, Fault.MAINTENANCE)
    for verdict in run_seeds(range(3), Limits(faults=faults, minutes=6)):
        assert verdict.ok, [*map(str, verdict.findings), replay_command(verdict.plan)]
    assert any(" maintenance over" in line for line in verdict.trace)


def test_who_is_put_out_is_owed_nothing_soon() -> None:
    faults = (Fault.RESET, Fault.CRASH, Fault.LIAR, Fault.REVOKE)
    for verdict in run_seeds(range(3), Limits(faults=faults, minutes=5)):
        assert verdict.ok, [*map(str, verdict.findings), replay_command(verdict.plan)]
        assert any(" revokes " in line for line in verdict.trace)
        assert any(" to zac@zed" in line for line in verdict.trace)


@pytest.mark.parametrize(
    "faults",
    [
        (Fault.RESET, Fault.CRASH, Fault.LOST_COMMIT, Fault.RETENTION, Fault.SEVERAL),
        (Fault.DISK_FULL, Fault.CRASH_POINT, Fault.RESTORE, Fault.CLONE, Fault.ASIDE),
    ],
    ids=["deaths", "full disks and backups"],
)
def test_a_journal_in_a_file_says_what_its_twin_says(faults: tuple[Fault, ...]) -> None:
    limits = Limits(faults=(*faults, Fault.SQLITE), minutes=3, messages=30)
    for verdict in run_seeds(range(2), limits):
        assert verdict.ok, [*map(str, verdict.findings), replay_command(verdict.plan)]
        assert verdict.deaths > 0


@pytest.mark.long
def test_every_promise_is_kept_for_long() -> None:
    broken = [
        replay_command(verdict.plan) for verdict in run_seeds(range(6_000, 6_500), Limits()) if not verdict.ok
    ]
    assert not broken


def digest(seed: int, also: tuple[Fault, ...], hash_seed: str) -> str:
    named = "".join(f"Fault({str(fault)!r})," for fault in also)
    done = subprocess.run(
        [sys.executable, "-c", DIGEST.format(seed=seed, also=named)],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(("seed", "also"), [(16, ()), (21, (Fault.SQLITE,))])
def test_the_same_seed_gives_the_same_trace_in_every_process(seed: int, also: tuple[Fault, ...]) -> None:
    here = run_plan(plan_of(seed, Limits(minutes=4, also=also))).digest
    assert {digest(seed, also, "1"), digest(seed, also, "2")} == {here}


def test_other_seeds_give_other_worlds() -> None:
    plans = {draw_plan(seed) for seed in range(50)}
    assert len({replace(plan, seed=0) for plan in plans}) == 50
    assert {fault for plan in plans for fault in plan.faults} == set(Fault) - ON_REQUEST
    assert any(not plan.faults or len(plan.faults) < 5 for plan in plans)


def test_a_world_is_replayed_by_one_command() -> None:
    drawn = draw_plan(7)
    assert replay_command(drawn) == "gateway harness sim --seeds 1 --from 7 --trace"
    small = replace(drawn, minutes=2, faults=(Fault.CRASH, Fault.STOP))
    assert replay_command(small).endswith("--from 7 --trace --minutes 2 --faults crash,stop")
    assert replay_command(replace(drawn, faults=())).endswith("--faults none")


def test_a_failing_world_shrinks_to_what_it_needs() -> None:
    def run(plan: Plan) -> Verdict:
        fails = Fault.CRASH in plan.faults and plan.messages >= 3 and plan.minutes >= 2
        found = (Finding(Promise.SENT_IS_KEPT, "gone"),) if fails else ()
        return Verdict(
            plan=plan,
            findings=found,
            digest="",
            trace=(),
            simulated_s=0,
            rest_s=0,
            sent=0,
            handed=0,
            deaths=0,
            faults=0,
        )

    big = replace(draw_plan(1), faults=tuple(Fault), minutes=19, messages=100, nodes=5)
    small = shrink(big, run)
    assert (small.faults, small.messages, small.minutes, small.nodes) == ((Fault.CRASH,), 3, 2, 2)
