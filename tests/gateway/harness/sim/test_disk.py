"""Disks of simulated nodes: full, slow, and losing the commit that nobody has heard of."""

from collections.abc import Iterator

import pytest

from gateway.harness.sim.disk import Disk
from outbox.chain import genesis
from outbox.errors import StorageFull
from outbox.ids import AgentId, Epoch, MeshId, NodeId
from outbox.records import Identity, LocalAgent

IDENTITY = Identity(MeshId("m" * 43), NodeId("n1"), Epoch("000001-000000000001"))


@pytest.fixture
def disk() -> Disk:
    return Disk(IDENTITY)


def agent(name: str) -> LocalAgent:
    return LocalAgent(name=AgentId(name), owner_epoch=1, token_hash=b"", created_at_ms=0)


def names(disk: Disk) -> Iterator[str]:
    return (row.name for row in disk.agents())


def keep(disk: Disk, name: str) -> None:
    disk.begin()
    disk.put_agent(agent(name))
    disk.commit()


def test_a_full_disk_refuses_what_writes_and_nothing_else(disk: Disk) -> None:
    disk.full = True
    with pytest.raises(StorageFull):
        keep(disk, "ann")
    disk.rollback()
    assert not list(names(disk))
    disk.begin()
    disk.commit()


def test_the_last_commit_can_be_lost_once_and_no_other(disk: Disk) -> None:
    keep(disk, "ann")
    keep(disk, "bob")
    disk.lose_last_commit()
    disk.lose_last_commit()
    assert list(names(disk)) == ["ann"]
    assert disk.head() == genesis(IDENTITY.mesh, IDENTITY.node, IDENTITY.epoch)
    keep(disk, "cat")
    assert list(names(disk)) == ["ann", "cat"]


def test_a_slow_disk_stops_its_process_for_each_commit_that_writes(disk: Disk) -> None:
    stopped: list[int] = []
    disk.slow_us, disk.busy = 5_000, stopped.append
    disk.begin()
    disk.commit()
    keep(disk, "ann")
    assert stopped == [5_000]
    assert disk.commits == 1
