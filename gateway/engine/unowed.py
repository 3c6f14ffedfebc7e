"""What was sent to a node whose key was revoked ends: nobody there is heard any more.

What it had not accepted goes to the fallback that its agent names; everything else is a dead letter.
"""

from gateway.engine.attempts import append, route_of
from gateway.engine.letters import bury
from gateway.engine.revoked import REVOKED
from gateway.engine.tick import Tick
from outbox.delivery import Input, is_for_several, settled
from outbox.kinds import Kind
from outbox.records import Delivery, DeliveryState


def end(tick: Tick, row: Delivery) -> None:
    """Nothing will come of this any more where it stands."""
    if settled(Kind(row.kind), row.state):
        return
    route = None
    if row.state is not DeliveryState.ACCEPTED and not is_for_several(row):
        route = route_of(tick, row)
    if route is None or route.node is None or not tick.store.events_about(row.event_id):
        bury(tick, row, Input.REFUSED, REVOKED)
    else:
        append(tick, row, route.node, route.decision())
