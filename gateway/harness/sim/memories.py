"""What the nodes of a world know and what they have forgotten, and which turns were dealt again for that.

A node that is put back to an older backup has lost what it said since. What others have read of that is not
lost, so it must not be done again; what nobody has read may be, and what may have been is to be reported.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from gateway.engine.doubts import POSSIBLE_DUPLICATE
from gateway.engine.epochs import STREAM_EPOCH
from gateway.engine.own_stream import Reason
from gateway.engine.recall import DUPLICATE_ENGAGEMENT
from gateway.harness.sim.chronicle import Chronicle
from gateway.harness.sim.disk import Disk
from gateway.harness.sim.gateway import SimHome
from outbox.delivery import is_for_several, settled
from outbox.envelope import Ack, decode_event, decode_payload
from outbox.ids import EventId, NodeId, epoch_ordinal
from outbox.kinds import RULES, Kind, Outcome
from outbox.records import Delivery, Received, Share, TurnState

_REPORTS = (POSSIBLE_DUPLICATE, DUPLICATE_ENGAGEMENT)


class Again(NamedTuple):
    """A turn that was ended, forgotten, and dealt once more."""

    node: str
    source: NodeId
    event: EventId
    told: bool
    """The node knew that it had forgotten something."""
    accepted: bool
    """The sender had read that it was taken here."""


class Memories:
    """The homes of a world, and what was dealt again."""

    def __init__(self, homes: Mapping[str, SimHome], chronicle: Chronicle) -> None:
        self.again: list[Again] = []
        self.outcasts: Collection[str] = ()
        """Who was put out: nobody asks them what they know."""
        self._homes = homes
        self._chronicle = chronicle
        self._lapsed: set[tuple[str, str, str]] = set()
        """Turns whose end was told and forgotten, by node, agent and event."""

    def disk(self, node: str) -> Disk:
        """What a node knows."""
        return self._homes[node].disk

    def disks(self) -> Iterator[tuple[str, Disk]]:
        """Of all nodes."""
        return ((name, home.disk) for name, home in self._homes.items())

    def forgot(self, node: str) -> bool:
        """Whether a node has ever forgotten something."""
        return bool(self._homes[node].lost)

    def ever_read(self, reader: str, source: NodeId) -> Iterator[tuple[str, int]]:
        """How far a node has read another's outbox, in all that it has ever known."""
        for disk in self._homes[reader].histories():
            cursor = disk.head() if reader == source else disk.cursor(source)
            if cursor is not None:
                yield cursor.epoch, cursor.seq

    def lapse(self, node: str, agent: str, event: str) -> bool:
        """A node went back: whether it has forgotten the end of this turn, which an agent was told."""
        rows = self.disk(node).ledger(EventId(event))
        if any(row.to_agent == agent and row.state is TurnState.DONE for row in rows):
            return False
        self._lapsed.add((node, agent, event))
        return True

    def handed(self, node: str, source: NodeId, agent: str, event: EventId, *, resumed: bool) -> str:
        """A turn is dealt; what is wrong with that, if it was ended before."""
        if (node, agent, event) not in self._lapsed:
            return ""
        self._chronicle.note(node, "again", f"{agent} {event}")
        sent = None if self._came_late(node, agent, event) else self._known_there(node, source, event)
        ended = sent is not None and _is_over(sent)
        told = self._knows(node)
        accepted = sent is not None and self._said_before(node, sent) and self._could_say(node, source)
        if sent is not None and not told and not RULES[Kind(sent.kind)].processed:
            accepted = False  # of a reply that was dealt before its node knew there is no ACK to ask about
        self.again.append(Again(node, source, event, told, accepted))
        asked = source != node and source not in self.outcasts and self._could_say(node, source)
        wrong = ended and told and not resumed and asked
        return f"{node} dealt {event} again, although {source} knows its end" if wrong else ""

    def _came_late(self, node: str, agent: str, event: EventId) -> bool:
        """Whether the turn is of an agent that came after others there had theirs: what the sender knows is
        of those, and nobody knows of this one.
        """
        rows = self.disk(node).ledger(event)
        late = any(row.to_agent == agent and row.share is Share.LATE for row in rows)
        return late and any(row.to_agent != agent and row.delivery_count for row in rows)

    def ended(self, node: str, agent: str, event: str) -> None:
        """A turn has ended where it is remembered."""
        self._lapsed.discard((node, agent, event))

    def unreported(self) -> Iterator[Again]:
        """Turns that were dealt again without a word, though the node could know that it may be so."""
        for again in self.again:
            pasts = self._homes[again.node].histories()
            reports = [past.incident(kind, again.event) for past in pasts for kind in _REPORTS]
            own = again.source == again.node
            due = again.told if own else again.accepted and self._could_say(again.node, again.source)
            if due and self._knows(again.node) and not any(reports):
                yield again

    def lost_turns(self, node: str, source: NodeId, row: Delivery) -> list[Received]:
        """What a node has forgotten of an event that its sender knows to have ended there."""
        told = row.processed_at_ms is not None or row.replied_at_ms is not None or row.dead_at_ms is not None
        if not told and not settled(Kind(row.kind), row.state):
            return []
        return [turn for past in self._homes[node].lost for turn in past.ever_turns(source, row.event_id)]

    def dealt_again(self, node: str, event: EventId) -> bool:
        """Whether a turn was dealt there that had ended before: the two ends need not be the same."""
        return any((again.node, again.event) == (node, event) for again in self.again)

    def _could_say(self, node: str, source: NodeId) -> bool:
        """Whether the sender that was asked is the one of now: it was not put back itself since then."""
        home = self._homes.get(source)
        return home is not None and home.went_back_as < self._homes[node].went_back_as

    def _said_before(self, node: str, sent: Delivery) -> bool:
        """Whether the sender had read that it was taken here, before that was forgotten."""
        if sent.accepted_at_ms is None:
            return False
        epoch = sent.accepted_epoch  # None: it has heard that this acceptance is lost
        return epoch is None or epoch_ordinal(epoch) <= self._homes[node].went_back_to

    def refused(self, node: str, source: NodeId, event: EventId, *, sent_on: bool) -> bool:
        """Whether a node has refused an event, and its sender can hear so of an attempt before the last one.

        One of them has gone back since, or the event was ``sent_on`` to another node and back again.
        """
        if not (sent_on or self.forgot(source) or self.forgot(node)):
            return False
        said = (
            decode_event(entry.body)
            for past in self._homes[node].histories()
            for _, entry in past.whole_outbox()
        )
        acks = (decode_payload(each, Ack) for each in said if (each.kind, each.corr_id) == (Kind.ACK, event))
        return any(ack.outcome is Outcome.REFUSED for ack in acks)

    def _known_there(self, node: str, source: NodeId, event: EventId) -> Delivery | None:
        home = self._homes.get(source)
        return None if home is None else home.disk.delivery(event, NodeId(node))

    def _knows(self, node: str) -> bool:
        """Whether a node has begun an epoch since it was put back, and not for a failed sync alone."""
        disk, since = self._homes[node].disk, self._homes[node].went_back_to
        failed = {
            incident.subject
            for incident in disk.incidents(open_only=False)
            if incident.kind == STREAM_EPOCH and incident.detail.startswith(Reason.FAILED_SYNC)
        }
        begun = [disk.identity().epoch, *(row.epoch for row in disk.ended_epochs())]
        return any(epoch_ordinal(epoch) > since and epoch not in failed for epoch in begun)


def _is_over(sent: Delivery) -> bool:
    """Whether a sender knows that all turns at a node have ended: a reply speaks for one agent."""
    replied = sent.replied_at_ms is not None and not is_for_several(sent)
    return replied or sent.processed_at_ms is not None
