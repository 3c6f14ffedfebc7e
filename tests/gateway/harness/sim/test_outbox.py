"""An outbox as a judge reads it, after a world in which things were sent, taken and given up."""

from gateway.harness.sim.outbox import read_outbox
from gateway.harness.sim.plan import Fault, Plan
from gateway.harness.sim.world import World
from outbox.delivery import settled
from outbox.ids import NodeId
from outbox.kinds import Kind

PLAN = Plan(
    seed=3,
    nodes=2,
    agents_per_node=1,
    minutes=3,
    messages=20,
    every_s=20,
    faults=(Fault.SHORT_LIFE, Fault.STOP),
)


def test_what_is_read_agrees_with_the_rows() -> None:
    world = World(PLAN)
    assert world.run().ok
    disk, reader = (world.mesh.homes[NodeId(name)].disk for name in ("n1", "n2"))
    read = read_outbox(disk)
    rows = disk.deliveries(("processed", "replied", "accepted", "dead_letter"), 1_000)
    assert set(read.owed) == {row.event_id for row in rows}
    assert set(read.letters) == {row.event_id for row in rows if row.state == "dead_letter"}
    assert {event.event_id for _, event in read.deliverable(NodeId("n2"))} == {
        row.event_id for row in rows if row.node == "n2"
    }
    assert all(disk.turns_of(*event) for event in (*read.accepted, *read.ended))
    assert read.hashes[disk.head().epoch, disk.head().seq] == disk.head().hash
    assert reader.cursor(NodeId("n1")) == disk.head()
    assert all(settled(Kind(row.kind), row.state) for row in rows)
    assert all(len(events) == 1 for events in read.keys.values())
