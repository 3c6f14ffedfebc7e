"""An owner that is away for too long: what it has not accepted goes to the fallback that its agent names."""

from gateway.engine.absences import Pair
from gateway.engine.attempts import append, route_of
from gateway.engine.limits import DUE_MAX
from gateway.engine.tick import Tick
from outbox.delivery import is_for_several
from outbox.records import Delivery, DeliveryState


def reroute(tick: Tick) -> None:
    """Send on what stands at nodes whose grace is over, a bounded part of it a tick."""
    for pair in tick.absences.take_overdue(tick.now.mono_ms):
        node, agent = pair
        rows = tick.store.unaccepted(agent, node, DUE_MAX)
        written = [row for row in rows if tick.store.events_about(row.event_id)]
        sent_on = [row for row in written if _send_on(tick, row, pair)]
        if len(written) < len(rows) or (sent_on and len(rows) == DUE_MAX):  # some are of this very tick
            tick.absences.again(pair, tick.now.mono_ms)


def _send_on(tick: Tick, row: Delivery, pair: Pair) -> bool:
    """Whether there was somewhere else to send it; an absence never uses up the last attempt."""
    if (
        row.state is not DeliveryState.EMITTED
        or is_for_several(row)
        or tick.policy.retry.exhausted(row.tries)
    ):
        return False
    route = route_of(tick, row)
    if route is None or route.node is None or route.node == pair[0]:
        return False
    append(tick, row, route.node, route.decision())
    return True
