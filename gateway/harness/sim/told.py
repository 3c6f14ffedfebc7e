"""The judge of incidents: a gateway tells of what its rows show, and of nothing that no rule knows.

The report works the same classes out of outboxes (``gateway.judging.correspondence``); here they are held
against the sender's own rows, in every world.
"""

from collections.abc import Iterator

from gateway.engine.deliveries import TURN_FAILED
from gateway.engine.letters import ANSWERED_AFTER_DEAD, about
from gateway.harness.sim.disk import Disk
from gateway.harness.sim.findings import Finding, Promise
from gateway.judging.correspondence import CORRESPONDENCES, Seen
from outbox.ids import NodeId
from outbox.kinds import Outcome
from outbox.records import Delivery, DeliveryState

_ALL = 1_000_000


def told(name: NodeId, disk: Disk) -> Iterator[Finding]:
    """Incidents of one node that are missing, or of a kind that nobody expects."""
    for row in disk.deliveries(tuple(DeliveryState), _ALL):
        one = [other for other in disk.obligations(row.event_id) if about(other) == about(row)]
        replied = any(other.replied_at_ms is not None for other in one)  # by whichever node was asked
        for kind, still_open in _owed(row, replied=replied):
            incident = disk.incident(kind, about(row))
            if incident is None or (still_open and incident.closed_at_ms is not None):
                yield Finding(Promise.EVERY_SEND_ENDS, f"{name} does not tell {kind} of {about(row)}")
    for incident in disk.incidents(open_only=False):
        known = CORRESPONDENCES.get(incident.kind)
        if known is None or known.seen is Seen.REPORT:
            what = f"{name} tells {incident.kind} of {incident.subject}, which no rule knows"
            yield Finding(Promise.EVERY_SEND_ENDS, what)


def _owed(row: Delivery, *, replied: bool) -> Iterator[tuple[str, bool]]:
    """What a row must have told at rest, and whether it is open still."""
    if row.dead_at_ms is not None:
        if row.outcome is Outcome.OK or row.replied_at_ms is not None:
            yield ANSWERED_AFTER_DEAD, True
    elif row.state is DeliveryState.PROCESSED and row.outcome is Outcome.FAILED:
        yield TURN_FAILED, not replied
