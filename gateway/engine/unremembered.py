"""Answers about own events from a node that this one does not remember to have sent them to.

Two ways lead there. An event went to its owner and later to a fallback, and then this node was put back to
a backup that knows only of the owner. Or a copy of this node, which ran beside it, sent the event to the
fallback. Such an answer is treated like that of a node whose attempt was superseded: it does not end the
delivery, and if the other node does the work too, an incident says that it was done twice.
"""

from msgspec.structs import replace

from gateway.engine.attempts import unanswered
from gateway.engine.tick import Tick
from gateway.routing import stands_in
from outbox.delivery import is_for_several
from outbox.ids import EventId, NodeId
from outbox.records import Delivery, DeliveryState


def of_a_lost_attempt(tick: Tick, event: EventId, node: NodeId) -> Delivery | None:
    """A row for the answer of a node that has none; None when that node had not to be asked.

    Only who has forgotten can have asked without knowing so; and it asks who speaks for the agent.
    """
    others = tick.store.obligations(event)
    if not others or is_for_several(others[0]) or not tick.store.ended_epochs():
        return None
    owner = tick.view.owner(others[0].to_agent)
    if (owner is None or owner.node != node) and not stands_in(tick.view, others[0].to_agent, node):
        return None
    for other in others:
        if other.attempt == 1:  # it was not alone
            tick.store.put_delivery(replace(other, tries=other.tries + 1))
    row = replace(unanswered(others[0], node), state=DeliveryState.SUPERSEDED, next_at_ms=None)
    tick.store.put_delivery(row)
    return row
