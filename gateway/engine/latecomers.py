"""Broadcasts that were there before an agent was: it gets those that have not expired, each once."""

from collections.abc import Iterable, Iterator

from gateway.engine.deliveries import DUPLICATE
from gateway.engine.doubts import POSSIBLE_DUPLICATE
from gateway.engine.ledgerfloors import has_forgotten, is_gone
from gateway.engine.tick import Tick
from outbox.delivery import INBOX_FULL
from outbox.envelope import Event, decode_event
from outbox.ids import AgentId, EventId, NodeId
from outbox.kinds import Outcome
from outbox.records import Received, Share, TurnState

AGENT_REMOVED = "agent_removed"
_ONE_AGENT_ONLY = frozenset({AGENT_REMOVED, INBOX_FULL})
"""Ends of a turn that nobody has had which say nothing of others."""


def missed(tick: Tick, agent: AgentId, rows: Iterable[Received]) -> Iterator[tuple[Received, Event]]:
    """A turn for each of these broadcasts (some row of it) that the agent has none of, but for its own.

    What its sender has forgotten is left out: the agent may have had it before it was removed, and the turn
    that says so may be forgotten too. So is what had ended before this node forgot it, for the same reason.
    """
    first: dict[tuple[NodeId, EventId], Received] = {}
    for row in rows:
        if row.expires_at_ms > tick.now.wall_ms:
            first.setdefault((row.source, row.event_id), row)
    for known in first.values():
        event = decode_event(known.body)
        own = (known.source, event.source_agent_id) == (tick.identity.node, agent)
        doubted = known.state is TurnState.HELD or known.outcome is Outcome.REFUSED
        if own or doubted or _is_over(tick, known):
            continue
        if tick.store.received(known.source, known.event_id, agent) is None:
            yield _late(known, agent, tick.now.wall_ms), event


def may_be_missed(row: Received) -> bool:
    """Whether the turn of a broadcast ended before it began, for a reason that says nothing of others."""
    of_everybody = row.share is Share.EVERYONE and not row.delivery_count
    return of_everybody and row.state is TurnState.DONE and row.error in _ONE_AGENT_ONLY


def _is_over(tick: Tick, known: Received) -> bool:
    """Whether it has ended as a whole, here or for its sender, by which the agent may have had it."""
    place = (known.source, known.epoch, known.seq)
    if has_forgotten(tick, *place) or is_gone(tick, *place):
        return True
    rows = tick.store.turns_of(known.source, known.event_id)
    untouched = all(row.state is TurnState.DONE and not row.delivery_count for row in rows)
    twice = tick.store.incident(DUPLICATE, known.event_id) is not None
    before = any(row.error not in _ONE_AGENT_ONLY for row in rows) or _is_told(tick, known)
    return twice or (untouched and before)


def _is_told(tick: Tick, known: Received) -> bool:
    return tick.store.incident(POSSIBLE_DUPLICATE, known.event_id) is not None


def _late(known: Received, agent: AgentId, now_ms: int) -> Received:
    """The turn of an agent that was not there when a broadcast came."""
    return Received(
        event_id=known.event_id,
        source=known.source,
        epoch=known.epoch,
        seq=known.seq,
        kind=known.kind,
        to_agent=agent,
        body=known.body,
        state=TurnState.QUEUED,
        priority=known.priority,
        accepted_at_ms=now_ms,
        expires_at_ms=known.expires_at_ms,
        share=Share.LATE,
        blob=known.blob,
    )
