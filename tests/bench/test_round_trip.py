"""Two gateways, two agents: send, accepted, reply, processed, beside JetStream that syncs each message.

Four processes on each side: two gateways (or NATS servers) and two agents with their Python clients. A round
trip needs four commits in sequence (synchronous=FULL, one fsync each). The sides take turns in one run, so
that whatever else the machine does meets all; read the ratios. One of the peers never says ``processed``: it
is there to see how much of a ratio that step is.
"""

from pathlib import Path

import pytest

from tests.bench.jetstream import jetstream_pair, why_not
from tests.bench.measuring import IN_FLIGHT, measure, median
from tests.bench.mesh import mesh_pair
from tests.bench.raw import raw_limit
from tests.bench.slowdisk import slowed, why_not_slow
from tests.bench.table import Target, show

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

ROUNDS = 3
SECONDS = 2.0
SLOWER_MS = (0.5, 1, 2)
"""A sync of a consumer's SSD takes half a millisecond to five."""
OF_ALWAYS = {1: Target(1, 2), 10: Target(2.5, 5), 100: Target(6, 15), 1000: Target(8, 25)}
OF_ALWAYS_SLOW = Target(10, 20)


async def test_round_trip(disk: Path) -> None:
    print(
        f"\nsynchronous=FULL on both gateways; fdatasync of one record: {raw_limit(disk, 1).sync_ms:.3f} ms"
    )
    if why_not():
        print(f"no JetStream beside it: {why_not()}")
        async with mesh_pair(disk / "mesh") as mesh:
            for in_flight in IN_FLIGHT:
                (await measure(mesh.ask, in_flight, SECONDS)).print("mesh", in_flight)
        return
    async with (
        mesh_pair(disk / "mesh") as mesh,
        jetstream_pair(disk / "always", always=True) as always,
        jetstream_pair(disk / "unsaid", always=True, processed=False) as unsaid,
    ):
        for in_flight in IN_FLIGHT:
            ours, theirs, shorter, sync_ms = [], [], [], []
            for _ in range(ROUNDS):
                sync_ms.append(raw_limit(disk, 1, 0.3).sync_ms)
                ours.append(await measure(mesh.ask, in_flight, SECONDS))
                theirs.append(await measure(always.ask, in_flight, SECONDS))
                shorter.append(await measure(unsaid.ask, in_flight, SECONDS))
            median(ours).print("mesh", in_flight)
            median(theirs).print("JetStream, sync_interval: always", in_flight)
            median(shorter).print("the same without `processed`", in_flight)
            for name, peer in (("JetStream always", theirs), ("it without `processed`", shorter)):
                ratio = median(ours).per_s / median(peer).per_s
                show(f"round trips at {in_flight}, of {name}", ratio, OF_ALWAYS[in_flight])
            syncs = median(ours).p50_ms / (4 * sorted(sync_ms)[ROUNDS // 2])
            if in_flight == 1:
                show("p50 at 1, in units of four fdatasyncs", syncs, Target(6, 3, at_most=True))
            if in_flight == 100:
                show("p99 at 100, ms", median(ours).p99_ms, Target(25, 10, at_most=True))
    print(f"fdatasync of one record, again: {raw_limit(disk, 1).sync_ms:.3f} ms")


async def test_round_trip_beside_a_peer_that_is_not_durable(disk: Path) -> None:
    if why_not():
        pytest.skip(why_not())
    print()
    async with mesh_pair(disk / "mesh") as mesh, jetstream_pair(disk / "default", always=False) as default:
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(await measure(mesh.ask, 100, SECONDS))
            theirs.append(await measure(default.ask, 100, SECONDS))
        median(ours).print("mesh", 100)
        median(theirs).print("JetStream, its default: a sync every two minutes", 100)
        show(
            "round trips at 100, of JetStream default",
            median(ours).per_s / median(theirs).per_s,
            Target(2, 6),
        )


@pytest.mark.parametrize("slower_ms", SLOWER_MS)
async def test_round_trip_on_a_slow_disk(disk: Path, slower_ms: float) -> None:
    """Each sync of either side takes longer, as on disks that people have: what group commit is for."""
    if why_not() or why_not_slow():
        pytest.skip(why_not() or why_not_slow())
    print()
    slow = slowed(slower_ms)
    async with (
        mesh_pair(disk / "mesh", prefix=slow) as mesh,
        jetstream_pair(disk / "always", always=True, prefix=slow) as always,
    ):
        for in_flight in IN_FLIGHT:
            ours, theirs = [], []
            for _ in range(ROUNDS):
                ours.append(await measure(mesh.ask, in_flight, SECONDS))
                theirs.append(await measure(always.ask, in_flight, SECONDS))
            median(ours).print(f"mesh, {slower_ms} ms more a sync", in_flight)
            median(theirs).print(f"JetStream always, {slower_ms} ms more a sync", in_flight)
            ratio = median(ours).per_s / median(theirs).per_s
            target = OF_ALWAYS_SLOW if (in_flight, slower_ms) == (100, 2) else OF_ALWAYS[in_flight]
            show(f"round trips at {in_flight}, {slower_ms} ms more, of JetStream always", ratio, target)
