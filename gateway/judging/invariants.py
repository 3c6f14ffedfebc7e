"""The invariants that journals and agents are checked for after a run. Each function returns what broke.

I1: what a sender was told is in its outbox, in order, once per attempt. I2: each ``accepted`` has its row.
I3: one engagement per event and node, repeated only while unacknowledged. I5: cursors pass nothing that was
not handled, and do not go back. Nothing here asks the code that ran; only what it left behind.

Whoever keeps its outbox bounded forgets entries, and others the rows that belong to them: of what may have
been forgotten nothing is said here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Set

from gateway.judging.engagements import check_engagements
from gateway.judging.facts import Debt, Mesh, NodeFacts, Said
from gateway.judging.faults import Fault, FaultKind
from gateway.judging.pasts import NONE, Past, Pasts, Way
from gateway.judging.turns import Taken, taken
from gateway.judging.witness import Account
from outbox.chain import Head
from outbox.ids import AgentId, EventId, NodeId
from outbox.kinds import RULES, Kind, Outcome, known_kind
from outbox.records import DeliveryState, Received

Key = tuple[NodeId, EventId]
"""Of an event: who wrote it, and its id."""


def check_all(mesh: Mesh, account: Account, pasts: Pasts = NONE) -> Iterator[Fault]:
    """Everything below that holds of every run, whatever it was about; also of what nodes gave up."""
    forgetful = {node for node, facts in mesh.items() if facts.has_forgotten}
    yield from check_promises(mesh, account, pasts)
    for facts in (*mesh.values(), *(past.lost for past in pasts.all)):
        yield from check_outbox(facts)
        yield from check_quarantine(facts)
        yield from check_accepted(facts, forgetful)
        yield from check_said_once(facts)
        yield from check_turns(facts, forgetful)
    yield from check_engagements(mesh, account, pasts)
    yield from check_sightings(mesh, account, pasts)
    yield from check_cursors(mesh, pasts)
    for past in pasts.all:  # agents of a clone saw what it knew, and nothing else
        alone = {past.node: past.lost}
        yield from check_promises(alone, past.account)
        yield from check_sightings(alone, past.account)


def check_promises(mesh: Mesh, account: Account, pasts: Pasts = NONE) -> Iterator[Fault]:
    """I1: every event that a sender was told of is in its node's outbox, or in the one that this node had
    then and gave up later."""
    appended: dict[int, set[EventId]] = {}
    for promise in account.promises:
        facts = mesh[promise.node]
        then = pasts.at(promise.node, promise.order, facts)
        for one in (facts, then):
            appended.setdefault(id(one), {entry.event_id for entry in one.outbox})
        found = promise.event_id in appended[id(facts)] or promise.event_id in appended[id(then)]
        if not found and not facts.has_forgotten:
            where = f"{promise.key}: told appended at {promise.node}"
            yield Fault(FaultKind.NOT_IN_OUTBOX, promise.event_id, where)


def check_outbox(facts: NodeFacts) -> Iterator[Fault]:
    """I1: the chain verifies, without holes, and no attempt stands in it twice."""
    if facts.broken:
        yield Fault(FaultKind.OUTBOX, facts.node, facts.broken)
    epoch, seq = facts.start.epoch, facts.start.seq
    for entry in facts.outbox:
        epoch, due = entry.epoch, (seq if entry.epoch == epoch else 0) + 1
        if entry.seq != due:
            yield Fault(FaultKind.OUTBOX, facts.node, f"entry {entry.seq} stands where {due} belongs")
            break
        seq = entry.seq
    attempts = Counter((entry.event_id, entry.attempt) for entry in facts.outbox)
    for (event, attempt), times in attempts.items():
        if times > 1:
            yield Fault(FaultKind.OUTBOX, event, f"attempt {attempt} stands {times} times in {facts.node}")


def check_quarantine(facts: NodeFacts) -> Iterator[Fault]:
    """I1: no honest outbox holds what is no event."""
    if facts.quarantined:
        yield Fault(FaultKind.OUTBOX, facts.node, f"{facts.quarantined} entries are in quarantine")


def check_accepted(facts: NodeFacts, forgetful: Set[NodeId] = frozenset()) -> Iterator[Fault]:
    """I2: each ``accepted`` of this node has an inbox row in the same journal, not younger than the ACK."""
    rows = taken(facts)
    for entry in facts.outbox:
        if not entry.accepts or entry.corr_id is None or not forgetful.isdisjoint(entry.to):
            continue
        there = _about(rows, entry)
        if there is None:
            yield Fault(FaultKind.ACCEPTED_WITHOUT_ROW, entry.corr_id, f"said by {facts.node}/{entry.seq}")
        elif there.accepted_at_ms > entry.at_ms:
            late = there.accepted_at_ms - entry.at_ms
            yield Fault(FaultKind.ACCEPTED_WITHOUT_ROW, entry.corr_id, f"its row is {late} ms younger")


def check_said_once(facts: NodeFacts) -> Iterator[Fault]:
    """I3: whatever is asked again, ``accepted`` of an event is one ACK beside promises, and so is its end."""
    said: dict[tuple[tuple[NodeId, ...], EventId, bool], set[EventId]] = {}
    for entry in facts.outbox:
        if entry.corr_id is not None and ((entry.accepts and not entry.promises) or entry.ends):
            said.setdefault((entry.to, entry.corr_id, entry.ends), set()).add(entry.event_id)
    for (_, event, ends), acks in said.items():
        if len(acks) > 1:
            what = "ended" if ends else "accepted"
            yield Fault(FaultKind.TURN, event, f"{facts.node} {what} it in {len(acks)} ACKs")


def check_turns(facts: NodeFacts, forgetful: Set[NodeId] = frozenset()) -> Iterator[Fault]:
    """I3: a terminal ACK for each finished turn, and it says what the ledger says.

    It speaks for all agents of the node that the event came for.
    """
    rows = taken(facts)
    ended = set()
    for entry in facts.outbox:
        if not entry.ends or entry.corr_id is None:
            continue
        ended |= {(source, entry.corr_id) for source in entry.to}
        there = _about(rows, entry)
        if there is None or not there.done:
            if there is not None or forgetful.isdisjoint(entry.to):
                state = "no row" if there is None else "a row that is open"
                yield Fault(FaultKind.TURN, entry.corr_id, f"{facts.node} said processed and has {state}")
        elif (entry.outcome, entry.deliveries) != (there.outcome, there.deliveries):
            yield Fault(FaultKind.TURN, entry.corr_id, f"ACK and ledger of {facts.node} disagree")
    for key, there in rows.items():
        kind = known_kind(there.kind)
        owed = there.done and there.owed and kind is not None and RULES[kind].processed
        if owed and there.outcome is not Outcome.REFUSED and key not in ended and not facts.has_forgotten:
            yield Fault(FaultKind.TURN, key[1], f"done at {facts.node} without a terminal ACK")


def check_sightings(mesh: Mesh, account: Account, pasts: Pasts = NONE) -> Iterator[Fault]:
    """I3: every hand-over that an agent saw was written down before it, in the ledger of that time."""
    rows: dict[int, dict[tuple[EventId, AgentId], Received]] = {}
    forgetful = any(facts.has_forgotten for facts in mesh.values())
    for turn in account.sightings:
        then = pasts.at(turn.node, turn.order, mesh[turn.node])
        if id(then) not in rows:
            rows[id(then)] = _by_agent(then)
        row = rows[id(then)].get((turn.event_id, turn.agent))
        if row is None and forgetful:
            continue
        if row is None or row.engaged_at_ms is None or row.delivery_count < turn.delivery_count:
            detail = f"{turn.agent} saw delivery {turn.delivery_count}, the ledger of {turn.node} did not"
            yield Fault(FaultKind.TURN, turn.event_id, detail)


def check_cursors(mesh: Mesh, pasts: Pasts = NONE) -> Iterator[Fault]:
    """I5: behind each cursor is the other node's history, and everything in it that was owed is handled.

    The same holds of what others had read of a history when it was given up.
    """
    handled = {node: set().union(*map(_handled, _all_of(facts, pasts))) for node, facts in mesh.items()}
    for node, facts in mesh.items():
        for source, head in facts.cursors.items():
            if source in mesh:
                yield from _passed(node, head, mesh[source], handled[node], pasts)
    for past in pasts.line_of_all():
        for node, head in past.read.items():
            yield from _passed(node, head, _history_of(head, past, pasts), handled[node], pasts)


def _history_of(head: Head, past: Past, pasts: Pasts) -> NodeFacts:
    """What was read there: this history, or one that its writer had given up before."""
    known = (past.lost, *(other.lost for other in pasts.of(past.node) if other.order < past.order))
    return next((facts for facts in known if facts.upto(head) is not None), past.lost)


def _passed(node: NodeId, head: Head, writer: NodeFacts, handled: Set[Key], pasts: Pasts) -> Iterator[Fault]:
    passed = writer.upto(head)
    if passed is None:
        yield Fault(FaultKind.CURSOR, f"{node} of {writer.node}", f"{head.seq} is no place in its outbox")
        return
    for entry in passed:
        if not _owed(entry, node) or (writer.node, entry.event_id) in handled:
            continue
        if not _may_be_unread(entry, head, node, writer, pasts):
            detail = f"{node} passed {writer.node}/{entry.seq} and did nothing"
            yield Fault(FaultKind.CURSOR, entry.event_id, detail)


def _may_be_unread(entry: Said, head: Head, node: NodeId, writer: NodeFacts, pasts: Pasts) -> bool:
    """Whose writer ran twice, or was put back by hand, was perhaps never read in this epoch: others went from
    the other history to a later one. Then its sender says that it was given up."""
    row = writer.deliveries.get(Debt(entry.event_id, node))
    twice = any(past.way is not Way.BACKUP for past in pasts.of(writer.node))
    return twice and entry.epoch != head.epoch and row is not None and row.state is DeliveryState.DEAD_LETTER


def _handled(facts: NodeFacts) -> set[Key]:
    """What a node took, or refused."""
    found = set(taken(facts))
    for entry in facts.outbox:
        if entry.status is not None and entry.corr_id is not None:
            found |= {(source, entry.corr_id) for source in entry.to}
    return found


def _all_of(facts: NodeFacts, pasts: Pasts) -> Iterator[NodeFacts]:
    yield facts
    yield from (past.lost for past in pasts.of(facts.node))


def check_survival(before: NodeFacts, after: NodeFacts) -> Iterator[Fault]:
    """What a killed gateway had on disk is all there later: entries, rows, cursors."""
    head = Head(before.outbox[-1].epoch, before.seq, before.outbox[-1].digest) if before.outbox else None
    if head is not None and after.upto(head) is None:
        yield Fault(
            FaultKind.FORGOTTEN, before.node, f"its first {before.seq} entries are not what they were"
        )
    if not after.has_forgotten:
        for turn in before.received.keys() - after.received.keys():
            yield Fault(FaultKind.FORGOTTEN, turn.event, f"its inbox row at {before.node} is gone")
        for debt in before.deliveries.keys() - after.deliveries.keys():
            yield Fault(FaultKind.FORGOTTEN, debt.event, f"its delivery row at {before.node} is gone")
    for source, head in before.cursors.items():
        now = after.cursors.get(source)
        if now is None or (now.epoch, now.seq) < (head.epoch, head.seq):
            yield Fault(FaultKind.CURSOR, f"{before.node} of {source}", f"it went back from {head.seq}")


def _owed(entry: Said, node: NodeId) -> bool:
    return entry.kind in {Kind.MESSAGE, Kind.REPLY} and node in entry.to


def _about(rows: Mapping[tuple[NodeId, EventId], Taken], ack: Said) -> Taken | None:
    """What the ledger has about the event that an ACK is of; whom it is for tells whose event."""
    assert ack.corr_id is not None
    return next((rows[source, ack.corr_id] for source in ack.to if (source, ack.corr_id) in rows), None)


def _by_agent(facts: NodeFacts) -> dict[tuple[EventId, AgentId], Received]:
    """Agents are told no source."""
    return {(turn.event, turn.agent): row for turn, row in facts.received.items()}
