"""Histories that nodes have given up: what was true there and is forgotten, and what that explains.

A node that is put back to an older copy of itself forgets its latest history; of a home that ran twice one
of the two histories goes. The journals that were given up are kept for the judge. Whatever it forgives must
stand in one of them, and must have happened before that one was given up: nothing else may be missing.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

import msgspec

from gateway.judging.facts import NodeFacts
from gateway.judging.witness import Account, Sighting
from outbox.chain import Head
from outbox.ids import AgentId, EventId, NodeId
from outbox.records import TurnState


class Way(StrEnum):
    """How a history came to be given up."""

    BACKUP = "backup"
    """``gateway restore`` put an older one in its place, which says so to its next start."""
    COPY = "copy"
    """Somebody put an older copy of the home in its place; nothing says so."""
    CLONE = "clone"
    """It was written by a second process on a copy of the home, which was stopped for good."""


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """One history that a node gave up."""

    node: NodeId
    way: Way
    order: int
    """Of the witness: what agents saw before this they saw of that history, unless it was a clone's."""
    since_ms: int
    """By the harness's clock, when there began to be two: when it was put back, or when a clone began."""
    base: NodeFacts
    """The journal that took its place, as it was then; of a clone the copy that it began with."""
    lost: NodeFacts
    """The journal that was given up, as its last process left it."""
    account: Account = Account()
    """What was seen by agents that were at a clone only."""
    accepted: Mapping[NodeId, frozenset[EventId]] = {}
    """Events of other nodes that these knew to be accepted there, at the latest when it was given up."""
    ended: Mapping[NodeId, frozenset[EventId]] = {}
    """The same for those that they knew to have ended there."""
    read: Mapping[NodeId, Head] = {}
    """How far other nodes had read it by then."""


class Pasts:
    """All of a run, by node and in their order."""

    def __init__(self, pasts: Iterable[Past] = ()) -> None:
        self.all = tuple(sorted(pasts, key=lambda past: past.order))

    def of(self, node: NodeId) -> tuple[Past, ...]:
        """What one node gave up."""
        return tuple(past for past in self.all if past.node == node)

    def line(self, node: NodeId) -> tuple[Past, ...]:
        """The same without clones: one came after the other, and the present one after the last."""
        return tuple(past for past in self.of(node) if past.way is not Way.CLONE)

    def line_of_all(self) -> Iterator[Past]:
        """Of every node."""
        return (past for past in self.all if past.way is not Way.CLONE)

    def at(self, node: NodeId, order: int, now: NodeFacts) -> NodeFacts:
        """The history that a node had when the witness saw this; ``now`` is the present one."""
        return next((past.lost for past in self.line(node) if past.order > order), now)

    def after(self, past: Past, now: NodeFacts) -> NodeFacts:
        """The history that took the place of another."""
        return self.at(past.node, past.order, now)

    def since(self, past: Past, now: NodeFacts) -> Iterator[NodeFacts]:
        """All histories that followed, the present one last."""
        yield from (later.lost for later in self.line(past.node) if later.order > past.order)
        yield now

    def lapse(self, turn: Sighting, ended: int) -> Past | None:
        """The history with which the end of a turn was forgotten before it was dealt again, if it was so."""
        for past in self.line(turn.node):
            if ended < past.order < turn.order and not has_ended(past.base, turn.event_id, turn.agent):
                return past
        return None

    def parted(self, node: NodeId, before: int, after: int) -> bool:
        """Whether a node went back between two sights."""
        return any(before < past.order < after for past in self.line(node))

    def can_say(self, source: NodeId, past: Past) -> bool:
        """Whether what a node knew when another one forgot has not been forgotten there as well."""
        return all(other.order < past.order for other in self.of(source))

    def once_ended(self, node: NodeId, source: NodeId, event: EventId) -> bool:
        """Whether a turn had an end in a history that this node gave up."""
        return any(
            (key.source, key.event) == (source, event) and row.state is TurnState.DONE
            for past in self.of(node)
            for key, row in past.lost.received.items()
        )


NONE = Pasts()
"""Of a run in which nobody forgot."""


def has_ended(facts: NodeFacts, event: EventId, agent: AgentId) -> bool:
    """Whether the ledger has the end of a turn."""
    return any(
        (key.event, key.agent) == (event, agent) and row.state is TurnState.DONE
        for key, row in facts.received.items()
    )
