"""The judge of promises: a sender knows what the agent said of its work, and nothing that it did not say."""

from collections.abc import Iterator, Mapping

from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.forgetting import skipped
from gateway.harness.sim.labels import promise_of
from gateway.harness.sim.mesh import SimMesh
from gateway.harness.sim.outbox import OutboxRead
from outbox.ids import NodeId
from outbox.records import Delivery, DeliveryState

_ALL = 1_000_000


def judge_promises(mesh: SimMesh, name: NodeId, outboxes: Mapping[NodeId, OutboxRead]) -> Iterator[Finding]:
    """Of all that a node has sent."""
    for row in mesh.homes[name].disk.deliveries(tuple(DeliveryState), _ALL):
        if row.node is not None and row.node in outboxes:
            yield from _judge(mesh, name, row, outboxes[row.node])


def _judge(mesh: SimMesh, name: NodeId, row: Delivery, there: OutboxRead) -> Iterator[Finding]:
    known = (row.eta_at_ms, row.plan_summary)
    if known not in {(None, None), promise_of(row.event_id)}:
        yield Finding(Promise.SENT_IS_KEPT, f"{name} knows of {row.event_id} what nobody promised: {known}")
    said = there.promised.get((name, row.event_id))
    heard = row.processed_at_ms is not None and row.node is not None and not _is_excused(mesh, name, row.node)
    if said and known == (None, None) and heard:
        yield Finding(Promise.SENT_IS_KEPT, f"{name} has not kept what {row.node} promised of {row.event_id}")


def _is_excused(mesh: SimMesh, name: NodeId, node: NodeId) -> bool:
    """Whether it may have passed unread what was promised there, or it was promised in another history."""
    here, there = mesh.homes[name], mesh.homes[node]
    back = bool(here.lost or there.lost) or not {name, node}.isdisjoint(mesh.twins.of)
    return back or skipped(here.disk, there.disk)
