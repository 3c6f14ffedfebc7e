"""Of what several nodes answer to one message its sender is given the first.

A message whose owner was away went to a fallback as well, and both have answered. A second turn would do the
work of the first again. So the later answer is accepted and kept, and its turn ends before it begins. How
often the node answers that was first is its own affair: all of that is dealt.
"""

from msgspec.structs import replace

from gateway.engine.residents import Residents
from gateway.engine.tick import Tick
from outbox.delivery import is_for_several, was_asked_alone
from outbox.envelope import Event
from outbox.ids import NodeId, event_id_ms
from outbox.kinds import Kind
from outbox.records import Delivery, DeliveryState, TurnState

SUPERSEDED = "superseded"


def asked(tick: Tick, source: NodeId, event: Event) -> Delivery | None:
    """The row of the node that answers, where another one may answer too; None of what is no reply."""
    if event.kind != Kind.REPLY:
        return None
    assert event.corr_id is not None, "the envelope asks for it"
    row = tick.store.delivery(event.corr_id, source)
    if row is None or is_for_several(row):
        return None
    if (event.source_agent_id, event.to_agent_id) != (row.to_agent, row.from_agent):
        return None
    return None if was_asked_alone(row) else row


def is_second(tick: Tick, row: Delivery) -> bool:
    """Whether the agent that asked has, or is about to get, the answer of another node than the row's."""
    others = tick.store.obligations(row.event_id)
    return any(_is_given(tick, other) for other in others if other.node != row.node)


def comes_too_late(tick: Tick, residents: Residents, event: Event) -> bool:
    """Whether a reply of which no row is known answers what was asked here and has ended, and what the outbox
    has forgotten since: whether its agent has an answer already nobody knows any more.

    What an agent asked where it lived before is not known here either, nor what was said after the backup
    that this node was put back to: such answers are welcome.
    """
    if event.to_agent_id is None or event.to_agent_id not in residents:
        return False
    assert event.corr_id is not None, "the envelope asks for it"
    if tick.store.obligations(event.corr_id):
        return False
    asker, asked_ms = residents.get(event.to_agent_id), event_id_ms(event.corr_id)
    if asker.stands_in_for or asked_ms < asker.created_at_ms:
        return False
    oldest = tick.store.oldest_batches(1) if tick.store.floor() is not None else []
    return any(asked_ms <= event_id_ms(batch.event_id) for batch in oldest)


def note(tick: Tick, row: Delivery, reply: Event) -> None:
    """A reply was accepted: it is the answer of its node, unless that has given one before."""
    if not _is_given(tick, row):
        tick.store.put_delivery(replace(row, reply=reply.event_id))


def _is_given(tick: Tick, row: Delivery) -> bool:
    """What is held may still be refused, and what expired unseen was given to nobody."""
    if row.reply is None:  # it may have answered when no other node was known to be asked
        alone = row.attempt == 1 and row.state is not DeliveryState.SUPERSEDED
        return alone and row.replied_at_ms is not None
    assert row.node is not None, "only a node answers"
    turn = tick.store.received(row.node, row.reply, row.from_agent)
    if turn is None:
        return True  # it is over, and was forgotten
    return turn.engaged_at_ms is not None or turn.state in {TurnState.QUEUED, TurnState.LEASED}
