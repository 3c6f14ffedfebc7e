"""Dead letters in an operator's hands: sent again as a new event, or taken from the list."""

from msgspec.structs import replace

from gateway.engine.deadletters import Dismiss, Redrive
from gateway.engine.effects import Dismissed, Sent
from gateway.engine.letters import DEAD, about
from gateway.engine.limits import DISMISSED_MAX
from gateway.engine.obligations import owe
from gateway.engine.residents import Residents
from gateway.engine.sender import sent_of
from gateway.engine.tick import Tick
from outbox.delivery import is_for_several
from outbox.envelope import Event, RouteDecision, Trace, decode_event
from outbox.errors import NotFound
from outbox.ids import EventId, NodeId
from outbox.records import Delivery, DeliveryState
from outbox.timestamps import rfc3339

NEWEST = (1 << 62, EventId(f"evt_{'f' * 32}"))
"""A place before all dead letters."""

OLDEST_ID = EventId(f"evt_{'0' * 32}")
"""Below all ids of one moment: what was given up before a time was sent before it, too."""


def handle(tick: Tick, residents: Residents, request: Redrive | Dismiss) -> Sent | Dismissed:
    """What an operator wants done. Raises as the two below."""
    if isinstance(request, Redrive):
        return redrive(tick, residents, request)
    return dismiss(tick, request)


def redrive(tick: Tick, residents: Residents, request: Redrive) -> Sent:
    """Send a dead letter again; asked twice, the same new event is the answer.

    Raises NotFound: it is no dead letter, is not in the outbox any more, its sender or recipient is gone.
    """
    dead = _dead(tick, request.event_id)
    before = dead[-1].redriven_as
    if before is not None:
        return sent_of(request.req, tick.store.obligations(before), duplicate=True)
    first = _first(tick, request.event_id)
    author = residents.get(dead[0].from_agent)
    nodes, decision = _where(tick, dead)
    event_id = tick.entropy.event_id(tick.now.wall_ms)
    trace = Trace(
        source_owner_epoch=author.owner_epoch,
        route_decision=decision,
        hops=first.trace.hops,
        traceparent=first.trace.traceparent,
    )
    event = replace(
        first,
        event_id=event_id,
        created_at=tick.stamp,
        expires_at=rfc3339(tick.now.wall_ms + (request.expires_in_ms or tick.policy.expires_in_ms)),
        idempotency_key=None,
        redrive_of=request.event_id,
        trace=trace,
    )
    rows = owe(tick, event, dead[0].to_agent, nodes)
    for row in dead:
        tick.store.put_delivery(replace(row, redriven_as=event_id, dismissed_at_ms=tick.now.wall_ms))
        tick.close_incident(DEAD, about(row))
    return sent_of(request.req, rows, duplicate=False)


def dismiss(tick: Tick, request: Dismiss) -> Dismissed:
    """Take dead letters from the list; their rows and events stay until the outbox forgets them.

    Raises NotFound when one that was named is no dead letter.
    """
    if request.event_ids:
        rows = [row for event in request.event_ids for row in _dead(tick, event)]
    else:
        found = tick.store.dead_letters((request.before_ms, OLDEST_ID), DISMISSED_MAX)
        rows = [row for row in found if (row.dead_at_ms or 0) < request.before_ms]
    for row in rows:
        tick.store.put_delivery(replace(row, dismissed_at_ms=row.dismissed_at_ms or tick.now.wall_ms))
        tick.close_incident(DEAD, about(row))
    return Dismissed(request.req, len(rows))


def _dead(tick: Tick, event: EventId) -> list[Delivery]:
    rows = [row for row in tick.store.obligations(event) if row.state is DeliveryState.DEAD_LETTER]
    if not rows:
        raise NotFound(f"{event} is no dead letter of this node", hint="list them with: gateway dead list")
    return rows


def _first(tick: Tick, event: EventId) -> Event:
    for entry in tick.store.events_about(event):
        found = decode_event(entry.body)
        if found.event_id == event:
            return found
    raise NotFound(f"{event} is not in the outbox any more", hint="retention has passed it; send it anew")


def _where(tick: Tick, dead: list[Delivery]) -> tuple[list[NodeId], RouteDecision | None]:
    """Where it goes now; what was for several goes to the nodes that did not take it."""
    if is_for_several(dead[0]):
        return [row.node for row in dead if row.node is not None], None
    route = tick.route(dead[0].to_agent)
    if route is None or route.node is None:
        raise NotFound(f"nobody owns {dead[0].to_agent} now", hint="add the agent, then redrive")
    return [route.node], route.decision()
