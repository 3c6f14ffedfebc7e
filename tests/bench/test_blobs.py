"""A message while a large file crosses the same link: how much longer it takes than without.

Rounds with and without a transfer take turns in one run, so that whatever else the machine does meets both.
"""

import random
from pathlib import Path

import pytest

from tests.bench.measuring import Sample, measure, median
from tests.bench.mesh import mesh_pair
from tests.bench.table import Target, show

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

ROUNDS = 3
SECONDS = 1.0
MIB = 1024 * 1024
FILE_MIB = 192
"""A transfer outlasts a round."""


def write(path: Path, seed: int) -> Path:
    chance = random.Random(seed)
    with path.open("wb") as file:
        for _ in range(FILE_MIB):
            file.write(chance.randbytes(MIB))
    return path


@pytest.mark.parametrize("in_flight", [1, 100])
async def test_messages_beside_a_transfer(disk: Path, in_flight: int) -> None:
    alone: list[Sample] = []
    beside: list[Sample] = []
    async with mesh_pair(disk / "mesh") as mesh:
        for number in range(ROUNDS):
            ref = await mesh.asker.blobs.upload(write(disk / "file", number))
            alone.append(await measure(mesh.ask, in_flight, SECONDS))
            await mesh.asker.send("answerer", file=ref)
            beside.append(await measure(mesh.ask, in_flight, SECONDS))
    print()
    median(alone).print("messages alone", in_flight)
    median(beside).print(f"beside a transfer of {FILE_MIB} MiB", in_flight)
    ratio = median(beside).p50_ms / median(alone).p50_ms
    show(f"p50 at {in_flight} beside a transfer, of alone", ratio, Target(4, 2, at_most=True))
