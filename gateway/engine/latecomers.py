"""Broadcasts that were there before an agent was: it gets those that have not expired, each once."""

from collections.abc import Iterator

from gateway.engine.tick import Tick
from outbox.envelope import Event, decode_event
from outbox.ids import AgentId
from outbox.kinds import Outcome
from outbox.records import Received, Share, TurnState


def missed(tick: Tick, agent: AgentId) -> Iterator[tuple[Received, Event]]:
    """A turn for each broadcast of this node that the agent has none of, but for its own.

    What its sender has forgotten is left out: the agent may have had it before it was removed, and the turn
    that says so may be forgotten too.
    """
    for known in tick.store.broadcasts(tick.now.wall_ms):
        event = decode_event(known.body)
        own = (known.source, event.source_agent_id) == (tick.identity.node, agent)
        doubted = known.state is TurnState.HELD or known.outcome is Outcome.REFUSED
        if own or doubted or tick.has_forgotten(known.source, known.epoch, known.seq):
            continue
        if tick.store.received(known.source, known.event_id, agent) is None:
            yield _late(known, agent, tick.now.wall_ms), event


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
