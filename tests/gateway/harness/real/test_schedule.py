"""A schedule follows from its seed, hits everybody it may and nobody twice at once."""

from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.harness.real.faultclass import OF_LINKS, OF_MEMORY, FaultClass
from gateway.harness.real.injection import Injection
from gateway.harness.real.limits import MEMORY_GAP_MS
from gateway.harness.real.place import Place
from gateway.harness.real.schedule import CRASH_POINTS, schedule
from gateway.judging.pasts import Way
from outbox.ids import NodeId

SEEDS = st.integers(0, 2**32)


def nodes(count: int) -> list[NodeId]:
    return [NodeId(f"n{number}") for number in range(1, count + 1)]


def overlap(one: Injection, other: Injection) -> bool:
    return one.at_ms < other.until_ms and other.at_ms < one.until_ms


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, count=st.integers(2, 6), seconds=st.integers(5, 120))
def test_it_is_fair(seed: int, count: int, seconds: int):
    plan = schedule(seed, nodes(count), seconds * 1_000, tuple(FaultClass))
    assert plan == schedule(seed, nodes(count), seconds * 1_000, tuple(FaultClass))
    assert list(plan) == sorted(plan, key=lambda one: one.at_ms)
    for one in plan:
        assert one.at_ms >= 0
        assert (one.point in CRASH_POINTS) == (one.fault is FaultClass.CRASH)
        assert bool(one.point) == (one.fault in {FaultClass.CRASH, *OF_MEMORY})
        assert one.until_ms <= seconds * 1_000
        assert len(one.targets) == (count if one.fault is FaultClass.STORM else 1 + (one.fault in OF_LINKS))
    for one, other in combinations(plan, 2):
        if FaultClass.STORM in {one.fault, other.fault} and FaultClass.SEEDLOSS in {one.fault, other.fault}:
            continue
        if (one.fault in OF_LINKS) != (other.fault in OF_LINKS) or not overlap(one, other):
            continue
        met = set(one.targets) & set(other.targets)
        assert len(met) < (2 if one.fault in OF_LINKS else 1), (one.line, other.line)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, count=st.integers(2, 6))
def test_there_is_always_somebody_who_remembers(seed: int, count: int):
    """Two nodes that forget at once would each be the only one who knows what the other did."""
    plan = schedule(seed, nodes(count), 180_000, tuple(FaultClass))
    forgets = [one for one in plan if one.fault in OF_MEMORY]
    for one, other in pairwise(forgets):
        assert other.at_ms - one.until_ms >= MEMORY_GAP_MS


def test_nodes_forget_in_every_way():
    plans = [schedule(seed, nodes(3), 120_000, tuple(OF_MEMORY)) for seed in range(4)]
    assert {(one.fault, one.point) for plan in plans for one in plan} == {
        *((FaultClass.RESTORE, way) for way in (Way.BACKUP, Way.COPY)),
        *((FaultClass.CLONE, place) for place in Place),
    }


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_each_way_to_forget_comes_before_one_comes_twice(seed: int):
    plan = schedule(seed, nodes(3), 300_000, tuple(OF_MEMORY))
    for fault in OF_MEMORY:
        points = [one.point for one in plan if one.fault is fault]
        assert all(set(pair) == set(points[:2]) for pair in zip(points[::2], points[1::2], strict=False))
        assert len(set(points[:2])) == min(2, len(points))


def test_some_that_were_put_back_are_alone_at_first():
    plans = [schedule(seed, nodes(3), 120_000, (FaultClass.RESTORE,)) for seed in range(8)]
    assert {(one.point, bool(one.amount)) for plan in plans for one in plan} == {
        (way, alone) for way in (Way.BACKUP, Way.COPY) for alone in (True, False)
    }


def test_seeds_differ():
    assert schedule(1, nodes(3), 60_000, tuple(FaultClass)) != schedule(
        2, nodes(3), 60_000, tuple(FaultClass)
    )


def test_every_class_has_its_turn_in_a_minute():
    happened = {one.fault for seed in range(3) for one in schedule(seed, nodes(5), 60_000, tuple(FaultClass))}
    assert happened == set(FaultClass)


def test_only_what_was_asked_for():
    assert schedule(5, nodes(3), 60_000, ()) == ()
    assert {one.fault for one in schedule(5, nodes(3), 60_000, (FaultClass.STOP,))} == {FaultClass.STOP}
