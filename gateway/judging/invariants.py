"""The invariants that journals and agents are checked for after a run. Each function returns what broke.

I1: what a sender was told is in its outbox, in order, once per attempt. I2: each ``accepted`` has its row.
I3: one engagement per event and node, repeated only while unacknowledged. I5: cursors pass nothing that was
not handled, and do not go back. Nothing here asks the code that ran; only what it left behind.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from gateway.judging.facts import NodeFacts, Said
from gateway.judging.faults import Fault, FaultKind
from gateway.judging.witness import Account
from outbox.ids import EventId, NodeId
from outbox.kinds import RULES, Kind, Outcome, known_kind
from outbox.records import TurnState

Mesh = Mapping[NodeId, NodeFacts]


def check_all(mesh: Mesh, account: Account) -> Iterator[Fault]:
    """Everything below that holds of every run, whatever it was about."""
    yield from check_promises(mesh, account)
    for facts in mesh.values():
        yield from check_outbox(facts)
        yield from check_quarantine(facts)
        yield from check_accepted(facts)
        yield from check_said_once(facts)
        yield from check_turns(facts)
    yield from check_engagements(mesh, account)
    yield from check_sightings(mesh, account)
    yield from check_cursors(mesh)


def check_promises(mesh: Mesh, account: Account) -> Iterator[Fault]:
    """I1: every event that a sender was told of is in its node's outbox."""
    appended = {node: {entry.event_id for entry in facts.outbox} for node, facts in mesh.items()}
    for promise in account.promises:
        if promise.event_id not in appended[promise.node]:
            where = f"{promise.key}: told appended at {promise.node}"
            yield Fault(FaultKind.NOT_IN_OUTBOX, promise.event_id, where)


def check_outbox(facts: NodeFacts) -> Iterator[Fault]:
    """I1: the chain verifies, without holes, and no attempt stands in it twice."""
    if facts.broken:
        yield Fault(FaultKind.OUTBOX, facts.node, facts.broken)
    for due, entry in enumerate(facts.outbox, 1):
        if entry.seq != due:
            yield Fault(FaultKind.OUTBOX, facts.node, f"entry {entry.seq} stands where {due} belongs")
            break
    attempts = Counter((entry.event_id, entry.attempt) for entry in facts.outbox)
    for (event, attempt), times in attempts.items():
        if times > 1:
            yield Fault(FaultKind.OUTBOX, event, f"attempt {attempt} stands {times} times in {facts.node}")


def check_quarantine(facts: NodeFacts) -> Iterator[Fault]:
    """I1: no honest outbox holds what is no event."""
    if facts.quarantined:
        yield Fault(FaultKind.OUTBOX, facts.node, f"{facts.quarantined} entries are in quarantine")


def check_accepted(facts: NodeFacts) -> Iterator[Fault]:
    """I2: each ``accepted`` of this node has an inbox row in the same journal, not younger than the ACK."""
    for entry in facts.outbox:
        if not entry.accepts or entry.corr_id is None:
            continue
        row = facts.received.get(entry.corr_id)
        if row is None:
            yield Fault(FaultKind.ACCEPTED_WITHOUT_ROW, entry.corr_id, f"said by {facts.node}/{entry.seq}")
        elif row.accepted_at_ms > entry.at_ms:
            late = row.accepted_at_ms - entry.at_ms
            yield Fault(FaultKind.ACCEPTED_WITHOUT_ROW, entry.corr_id, f"its row is {late} ms younger")


def check_said_once(facts: NodeFacts) -> Iterator[Fault]:
    """I3: whatever is asked again, ``accepted`` of an event is one ACK, and so is its end."""
    said: dict[tuple[EventId, bool], set[EventId]] = {}
    for entry in facts.outbox:
        if entry.corr_id is not None and (entry.accepts or entry.ends):
            said.setdefault((entry.corr_id, entry.ends), set()).add(entry.event_id)
    for (event, ends), acks in said.items():
        if len(acks) > 1:
            what = "ended" if ends else "accepted"
            yield Fault(FaultKind.TURN, event, f"{facts.node} {what} it in {len(acks)} ACKs")


def check_turns(facts: NodeFacts) -> Iterator[Fault]:
    """I3: a terminal ACK for each finished turn, and it says what the ledger says."""
    ends: dict[EventId, list[Said]] = {}
    for entry in facts.outbox:
        if entry.ends and entry.corr_id is not None:
            ends.setdefault(entry.corr_id, []).append(entry)
    for event, acks in ends.items():
        row = facts.received.get(event)
        if row is None or row.state is not TurnState.DONE:
            state = "no row" if row is None else f"a row that is {row.state}"
            yield Fault(FaultKind.TURN, event, f"{facts.node} said processed and has {state}")
        elif (acks[0].outcome, acks[0].deliveries) != (row.outcome, row.delivery_count):
            yield Fault(FaultKind.TURN, event, f"ACK and ledger of {facts.node} disagree")
    for row in facts.received.values():
        kind = known_kind(row.kind)
        owed = row.state is TurnState.DONE and kind is not None and RULES[kind].processed
        if owed and row.outcome is not Outcome.REFUSED and row.event_id not in ends:
            yield Fault(FaultKind.TURN, row.event_id, f"done at {facts.node} without a terminal ACK")


def check_engagements(mesh: Mesh, account: Account) -> Iterator[Fault]:
    """I3: nobody was handed a turn after hearing that it was over, and no event was engaged on two nodes."""
    over = {(end.agent, end.event_id): end.order for end in reversed(account.settlements)}
    for turn in account.sightings:
        end = over.get((turn.agent, turn.event_id))
        if end is not None and turn.order > end:
            detail = f"handed to {turn.agent} again (delivery {turn.delivery_count}) after its ACK"
            yield Fault(FaultKind.ENGAGED_TWICE, turn.event_id, detail)
    engaged: dict[EventId, set[NodeId]] = {}
    for node, facts in mesh.items():
        for row in facts.received.values():
            if row.engaged_at_ms is not None:
                engaged.setdefault(row.event_id, set()).add(node)
    for turn in account.sightings:
        engaged.setdefault(turn.event_id, set()).add(turn.node)
    for event, nodes in engaged.items():
        if len(nodes) > 1:
            yield Fault(FaultKind.ENGAGED_TWICE, event, f"engaged on {' and '.join(sorted(nodes))}")


def check_sightings(mesh: Mesh, account: Account) -> Iterator[Fault]:
    """I3: every hand-over that an agent saw was written down before it."""
    for turn in account.sightings:
        row = mesh[turn.node].received.get(turn.event_id)
        if row is None or row.engaged_at_ms is None or row.delivery_count < turn.delivery_count:
            detail = f"{turn.agent} saw delivery {turn.delivery_count}, the ledger of {turn.node} did not"
            yield Fault(FaultKind.TURN, turn.event_id, detail)


def check_cursors(mesh: Mesh) -> Iterator[Fault]:
    """I5: behind each cursor is the other node's history, and everything in it that was owed is handled."""
    for node, facts in mesh.items():
        answered = {entry.corr_id for entry in facts.outbox if entry.status is not None}
        for source, head in facts.cursors.items():
            if source not in mesh:
                continue
            theirs = mesh[source].outbox
            if head.seq > len(theirs) or (head.seq and theirs[head.seq - 1].digest != head.hash):
                yield Fault(FaultKind.CURSOR, f"{node} of {source}", f"{head.seq} is no place in its outbox")
                continue
            for entry in theirs[: head.seq]:
                if (
                    _owed(entry, node)
                    and entry.event_id not in facts.received
                    and entry.event_id not in answered
                ):
                    detail = f"{node} passed {source}/{entry.seq} and did nothing"
                    yield Fault(FaultKind.CURSOR, entry.event_id, detail)


def check_survival(before: NodeFacts, after: NodeFacts) -> Iterator[Fault]:
    """What a killed gateway had on disk is all there later: entries, rows, cursors."""
    if [entry.digest for entry in before.outbox] != [entry.digest for entry in after.outbox[: before.seq]]:
        yield Fault(
            FaultKind.FORGOTTEN, before.node, f"its first {before.seq} entries are not what they were"
        )
    for event in before.received.keys() - after.received.keys():
        yield Fault(FaultKind.FORGOTTEN, event, f"its inbox row at {before.node} is gone")
    for event in before.deliveries.keys() - after.deliveries.keys():
        yield Fault(FaultKind.FORGOTTEN, event, f"its delivery row at {before.node} is gone")
    for source, head in before.cursors.items():
        now = after.cursors.get(source)
        if now is None or (now.epoch, now.seq) < (head.epoch, head.seq):
            yield Fault(FaultKind.CURSOR, f"{before.node} of {source}", f"it went back from {head.seq}")


def _owed(entry: Said, node: NodeId) -> bool:
    return entry.kind in {Kind.MESSAGE, Kind.REPLY} and node in entry.to
