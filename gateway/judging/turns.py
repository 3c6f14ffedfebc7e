"""What a node did about an event, all its agents that the event came for taken together.

An ACK speaks for the node. This is worked out anew from the rows: the judge does not ask the engine how it
put them together.
"""

from collections.abc import Sequence

import msgspec

from gateway.judging.facts import NodeFacts
from outbox.ids import EventId, NodeId
from outbox.kinds import Outcome
from outbox.records import Received, Share, TurnState


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one event at one node."""

    kind: str
    accepted_at_ms: int
    """The first of them."""
    done: bool
    """All that somebody waits for are."""
    owed: bool
    """Somebody waits for one of them: not all came for agents that came after the event."""
    outcome: Outcome | None
    """Of what is done: refused when all refused, failed when one did not go well."""
    error: str | None
    """Of a sole turn; what is said of several is no row's."""
    sole: bool
    deliveries: int


def taken(facts: NodeFacts) -> dict[tuple[NodeId, EventId], Taken]:
    """By the event and the node that wrote it."""
    found: dict[tuple[NodeId, EventId], list[Received]] = {}
    for turn, row in facts.received.items():
        found.setdefault((turn.source, turn.event), []).append(row)
    return {key: together(rows) for key, rows in found.items()}


def together(rows: Sequence[Received]) -> Taken:
    """The turns of one event at one node."""
    awaited = [row for row in rows if row.share is not Share.LATE]
    counted = awaited or rows
    done = all(row.state is TurnState.DONE for row in counted)
    first = counted[0]
    return Taken(
        kind=first.kind,
        accepted_at_ms=min(row.accepted_at_ms for row in rows),
        done=done,
        owed=bool(awaited),
        outcome=_outcome(counted) if done else None,
        error=first.error if len(counted) == 1 else None,
        sole=len(counted) == 1,
        deliveries=sum(row.delivery_count for row in counted),
    )


def _outcome(rows: Sequence[Received]) -> Outcome:
    outcomes = {row.outcome for row in rows}
    if outcomes == {Outcome.REFUSED}:
        return Outcome.REFUSED
    return Outcome.OK if outcomes == {Outcome.OK} else Outcome.FAILED
