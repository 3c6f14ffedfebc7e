"""Agents that name a node which answers for them while their own is away, and the judge of what it did."""

from collections.abc import Callable, Collection, Mapping

from gateway.engine.attempts import NOT_OWNER
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.disk import Disk
from gateway.harness.sim.findings import Finding, Promise
from outbox.chain import Entry
from outbox.envelope import Header, decode_event, decode_header
from outbox.ids import AgentId, Epoch, EventId, NodeId, Seq
from outbox.kinds import RULES, Kind
from outbox.readership import names
from stateroom.limits import STALE_MS

_GRACES_MS = (0, 20_000, 90_000)


class StandIns:
    """Who stands in for whom."""

    def __init__(self, seed: int, agents: Mapping[NodeId, list[AgentId]]) -> None:
        dice = Dice(seed, "stand-ins")
        self.grace_ms = dice.among(_GRACES_MS)
        self.owner: dict[AgentId, NodeId] = {}
        self.outcasts: Collection[NodeId] = ()
        """Nodes that were put out: their agents' fallbacks answer at once."""
        self.fallback: dict[AgentId, NodeId] = {}
        """Of the agents that have one."""
        for node, owned in agents.items():
            for agent in owned:
                self.owner[agent] = node
                if dice.chance(0.7):
                    self.fallback[agent] = dice.among([other for other in agents if other != node])

    def early(self, disk: Disk, entry: Entry, unheard_ms: Callable[[NodeId], int | None]) -> Finding | None:
        """Judged as an attempt is written: whether it goes to a fallback while the owner was heard lately."""
        header = decode_header(entry.header)
        if len(header.to) != 1 or not RULES[Kind(header.kind)].wakes:
            return None
        event = decode_event(entry.body)
        agent, asked = event.to_agent_id, disk.ledger(event.corr_id) if event.corr_id is not None else []
        if event.kind == Kind.REPLY and any(turn.source == header.to[0] for turn in asked):
            return None  # it was asked from there
        if agent is None or self.fallback.get(agent) != header.to[0] or self.owner[agent] in self.outcasts:
            return None
        owner = self.owner[agent]
        headers = [decode_header(each.header) for each in disk.events_about(header.event_id)]
        before = max(_attempts(headers, header.event_id), key=lambda other: other.attempt, default=None)
        refused = any(row.error == NOT_OWNER for row in disk.obligations(header.event_id))
        if refused or (before is not None and before.to == header.to):
            return None  # it was there before, or the owner has sent it away
        silent_ms = unheard_ms(owner)
        if silent_ms is None or silent_ms >= STALE_MS + self.grace_ms:
            return None
        what = f"{header.event_id} went to {header.to[0]} {silent_ms} ms after {owner} was heard"
        return Finding(Promise.ENGAGED_ONCE, what)


def engaged_elsewhere(
    writer: Disk, reader: NodeId, upto: tuple[Epoch, Seq], event: EventId
) -> Finding | None:
    """At the first hand-over: whether ``reader`` had read by then that the event is for another node."""
    places = writer.places_of(event)
    read = [decode_header(entry.header) for epoch, entry in places if (epoch, entry.seq) <= upto]
    last = max(_attempts(read, event), key=lambda header: header.attempt, default=None)
    if last is None or names(last, reader):
        return None
    what = f"{reader} began {event} and had read that it is for {last.to}"
    return Finding(Promise.ENGAGED_ONCE, what)


def _attempts(headers: list[Header], event: EventId) -> list[Header]:
    return [header for header in headers if header.event_id == event]
