"""I3 for who asks: of what several nodes answer to one message, the answers of one are dealt."""

from collections.abc import Iterable, Iterator

from outbox.delivery import is_for_several
from outbox.envelope import decode_event
from outbox.ids import EventId, NodeId
from outbox.kinds import Kind
from outbox.records import Delivery, Received


def given_twice(
    turns: Iterable[Received], owed: Iterable[Delivery]
) -> Iterator[tuple[EventId, list[NodeId]]]:
    """Messages of which an agent has in hand, or had, the answers of several nodes that were asked in turn.

    ``turns`` are the ledger of one node, ``owed`` its own messages. Of a node that it does not remember to
    have asked nothing is said.
    """
    asked: dict[EventId, set[NodeId]] = {}
    for row in owed:
        if row.node is not None and not is_for_several(row):
            asked.setdefault(row.event_id, set()).add(row.node)
    given: dict[EventId, set[NodeId]] = {event: set() for event, nodes in asked.items() if len(nodes) > 1}
    for turn in turns if given else ():
        if turn.kind == Kind.REPLY and turn.engaged_at_ms is not None:
            event = decode_event(turn.body).corr_id
            if event in given and turn.source in asked[event]:
                given[event].add(turn.source)
    yield from ((event, sorted(nodes)) for event, nodes in given.items() if len(nodes) > 1)
