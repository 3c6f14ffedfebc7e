"""A gateway whose log lies on a disk that is full."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

from tests.mesh.conftest import MakeNode
from tests.mesh.processes import until

FULL = b"\0" * 1024 * 1024


async def test_a_full_disk_of_the_log_stops_nothing_and_the_log_comes_back(
    make_node: MakeNode, mount_small: Callable[[Path, int], Path]
) -> None:
    vps = make_node("vps")
    vps.found()
    disk = mount_small(vps.home.log.parent, 256)
    vps.start()
    await vps.ready()
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        assert file.write(FULL) < len(FULL), "the disk is full"
    numbers = count()
    async with vps.client() as gateway:
        await gateway.add_agent("ada")
        ada = gateway.agent("ada")

        async def talk() -> None:
            """A message goes through, and an incident makes a line in the log."""
            await ada.send("ada", "hello")
            await ada.tell_incident(f"fork:{next(numbers)}", "fork", "critical")

        async def held() -> bool:
            await talk()
            return "log.waiting" in vps.tail()

        await until(held, 60, "a line finds no room")
        ballast.unlink()

        async def written() -> bool:
            await talk()
            return "log.back" in vps.tail()

        await until(written, 60, "the log is written again")
    vps.kill(15)
    lines = [json.loads(line) for line in vps.log().splitlines()]
    on_stderr = [json.loads(line) for line in vps.errors.read_text().splitlines() if line.startswith("{")]
    beside = {"log.waiting", "log.back"}
    told = [line for line in on_stderr if line["event"].partition(":")[0] not in beside]
    assert [line["event"] for line in lines] == [line["event"] for line in told], "nothing is missing"
    assert all(line["level"] != "critical" for line in on_stderr)
