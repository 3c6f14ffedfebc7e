"""I3 for agents: nothing is dealt after its end, unless its node forgot that end and says so.

A node that was put back asks the others what they remember, and deals nothing of theirs before it knows. What
they knew to be ended is not dealt again. What they knew to be accepted may be, and is reported. What nobody
knew anything about cannot be told from what is new.
"""

from collections.abc import Callable, Iterator

from gateway.engine.doubts import POSSIBLE_DUPLICATE
from gateway.engine.recall import DUPLICATE_ENGAGEMENT
from gateway.judging.answers import given_twice
from gateway.judging.facts import Mesh
from gateway.judging.faults import Fault, FaultKind
from gateway.judging.pasts import NONE, Past, Pasts, Way
from gateway.judging.witness import Account, Sighting
from outbox.ids import AgentId, EventId, NodeId
from outbox.kinds import RULES, Kind
from outbox.records import Received, Share

_REPORTS = frozenset({POSSIBLE_DUPLICATE, DUPLICATE_ENGAGEMENT})


def check_engagements(mesh: Mesh, account: Account, pasts: Pasts = NONE) -> Iterator[Fault]:
    """Nobody was handed a turn after hearing that it was over, and no event was engaged on two nodes."""
    ended = ends_before(account)
    for turn in account.sightings:
        end = ended(turn)
        if end is None:
            continue
        past = pasts.lapse(turn, end)
        if past is None:
            detail = f"handed to {turn.agent} again (delivery {turn.delivery_count}) after its ACK"
            yield Fault(FaultKind.ENGAGED_TWICE, turn.event_id, detail)
        else:
            yield from _again(turn, past, mesh, pasts)
    yield from _on_two_nodes(mesh, account, pasts)
    for facts in mesh.values():
        for event, nodes in given_twice(facts.received.values(), facts.deliveries.values()):
            yield Fault(FaultKind.ENGAGED_TWICE, event, f"answered twice, by {' and '.join(nodes)}")


def ends_before(account: Account) -> Callable[[Sighting], int | None]:
    """What tells, of a turn that is dealt, when its latest end before that was told."""
    ends: dict[tuple[AgentId, EventId], list[int]] = {}
    for end in account.settlements:
        ends.setdefault((end.agent, end.event_id), []).append(end.order)

    def latest(turn: Sighting) -> int | None:
        orders = ends.get((turn.agent, turn.event_id), ())
        return max((order for order in orders if order < turn.order), default=None)

    return latest


def _again(turn: Sighting, past: Past, mesh: Mesh, pasts: Pasts) -> Iterator[Fault]:
    """A turn whose end its node forgot is dealt once more: was that right, and does it say so?"""
    event, node = turn.event_id, turn.node
    lost = next((row for key, row in past.lost.received.items() if key.event == event), None)
    source = lost.source if lost is not None else node
    asked = source != node and pasts.can_say(source, past)
    if asked and past.way is Way.BACKUP and event in past.ended.get(source, ()):
        detail = f"{node} dealt it again after its restore, although {source} knows its end"
        yield Fault(FaultKind.ENGAGED_TWICE, event, detail)
    known = asked and event in past.accepted.get(source, ()) and not _is_past_asking(past, lost)
    due = known or (source == node and past.way is Way.BACKUP)
    reports = (
        incident
        for facts in pasts.since(past, mesh[node])
        for incident in facts.incidents
        if incident.kind in _REPORTS and incident.subject == event
    )
    if due and next(reports, None) is None:
        yield Fault(FaultKind.UNREPORTED, event, f"{node} dealt it again and does not say so")


def _is_past_asking(past: Past, lost: Received | None) -> bool:
    """Whether its node cannot learn that it was dealt: it found out late, and no ACK is owed that says it.

    A copy says of itself that it is one only when others know more. How late that was is not looked at here;
    worlds of the simulation know it.
    """
    return past.way is Way.COPY and lost is not None and not RULES[Kind(lost.kind)].processed


def _on_two_nodes(mesh: Mesh, account: Account, pasts: Pasts) -> Iterator[Fault]:
    seen = {(turn.node, turn.agent, turn.event_id) for turn in account.sightings}
    engaged: dict[tuple[NodeId, EventId], set[NodeId]] = {}
    for facts in (*mesh.values(), *(past.lost for past in pasts.all)):
        for key, row in facts.received.items():
            if row.share is not Share.SOLE:
                continue  # it is for the agents of several nodes
            if row.engaged_at_ms is not None or (facts.node, key.agent, key.event) in seen:
                engaged.setdefault((key.source, key.event), set()).add(facts.node)
    for (_, event), nodes in engaged.items():
        if len(nodes) > 1:
            yield Fault(FaultKind.ENGAGED_TWICE, event, f"engaged on {' and '.join(sorted(nodes))}")
