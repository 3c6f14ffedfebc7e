"""The judge: reads the stores of a world that has come to rest, and nothing that the code says of itself."""

from collections.abc import Iterator, Sequence

from gateway.engine.acks import combined
from gateway.engine.blobs import BLOBS_FULL
from gateway.engine.latecomers import AGENT_REMOVED
from gateway.engine.letters import DEAD, NEVER_ACCEPTED, NOT_PROCESSED, about
from gateway.harness.sim.blobjudge import judge_blobs
from gateway.harness.sim.disk import Disk
from gateway.harness.sim.engaging import answered_once, engaged_once
from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.forgetting import ENDED, forgotten, missed, skipped
from gateway.harness.sim.liar import STOLEN, STRANGER, Liar
from gateway.harness.sim.mesh import SimMesh
from gateway.harness.sim.outbox import OutboxRead, Place, read_outbox
from gateway.harness.sim.plan import Fault
from gateway.harness.sim.promisejudge import judge_promises
from gateway.harness.sim.remembering import judge_memories
from gateway.harness.sim.told import told
from outbox.chain import Entry
from outbox.delivery import INBOX_FULL, is_for_several, settled
from outbox.envelope import Ack, Event, decode_event, decode_payload
from outbox.errors import PeerError
from outbox.ids import AgentId, Epoch, NodeId, Seq
from outbox.kinds import RULES, AckStatus, Kind, Outcome
from outbox.records import Delivery, DeliveryState, Received, Share, TurnState
from outbox.verification import verify_outbox

_ALL = 1_000_000
_STATES = tuple(DeliveryState)
_BY_THE_NODE = frozenset({"expired", AGENT_REMOVED})
"""Ends of turns that no agent has said."""


def unrest(mesh: SimMesh) -> Finding | None:
    """What is broken if nothing more happens; None: all has ended, and everybody knows the same."""
    for name in mesh.members():
        if (why := _unrest_at(mesh, name)) is not None:
            return Finding(Promise.EVERY_SEND_ENDS, why)
    digests = {gateway.digest() for gateway in mesh.living() if gateway.name not in mesh.outcasts}
    return None if len(digests) == 1 else Finding(Promise.ROOMS_CONVERGE, "the state rooms differ")


def _unrest_at(mesh: SimMesh, name: NodeId) -> str | None:
    disk = mesh.homes[name].disk
    if waiting := [agent.name for agent in mesh.agents[name] if agent.todo]:
        return f"{waiting[0]} has something to send"
    if mesh.announcements[name]:
        return f"the operator of {name} has something to announce"
    if name not in mesh.gateways or name in mesh.twins.running():
        return f"{name} does not run, or runs twice"
    for row in disk.deliveries(_STATES, _ALL):
        if not settled(Kind(row.kind), row.state):
            return f"{row.event_id} of {row.from_agent} is {row.state} ({row.node} attempt {row.attempt})"
    for turn in disk.open_turns():
        return f"{turn.event_id} at {turn.to_agent} is {turn.state}"
    return next((f"{name} has not read {other} to its end" for other in _unread(mesh, name)), None)


def _unread(mesh: SimMesh, name: NodeId) -> Iterator[NodeId]:
    for other in mesh.members():
        head, cursor = mesh.homes[other].disk.head(), mesh.homes[name].disk.cursor(other)
        there = cursor is not None and (cursor.epoch, cursor.seq) == (head.epoch, head.seq)
        if other != name and head.seq and not there:
            yield other


def judge(mesh: SimMesh, liars: Sequence[Liar]) -> Iterator[Finding]:
    """Every broken promise that the stores show."""
    outboxes = {name: read_outbox(home.disk) for name, home in mesh.homes.items()}
    for name in mesh.names:
        yield from _chain(mesh, name, mesh.homes[name].disk)
        yield from _sent(mesh, name, outboxes[name])
    for name in mesh.members():
        home = mesh.homes[name]
        yield from _acks(name, home.disk, outboxes[name])
        yield from _deliveries(mesh, name, home.disk, outboxes[name])
        yield from _incidents(name, home.disk)
        yield from told(name, home.disk)
        yield from _turns(mesh, name, home.disk)
        yield from answered_once(mesh, name, home.disk)
        for source, outbox in outboxes.items():
            yield from _cursor(mesh, home.disk, mesh.homes[source].disk, outbox, outboxes[name])
        yield from forgotten(mesh, name, outboxes[name])
        yield from _lies(name, home.disk, liars)
        yield from judge_blobs(name, home)
        yield from judge_promises(mesh, name, outboxes)
    yield from engaged_once(mesh)
    yield from judge_memories(mesh)
    yield from _reached(mesh)


def _chain(mesh: SimMesh, name: NodeId, disk: Disk) -> Iterator[Finding]:
    try:
        verify_outbox(disk, mesh.keys.key(name).verify, disk.beginning())
    except PeerError as error:
        yield Finding(Promise.SENT_IS_KEPT, f"the outbox of {name} does not verify: {error}")


def _sent(mesh: SimMesh, name: NodeId, outbox: OutboxRead) -> Iterator[Finding]:
    pasts = [read_outbox(past) for past in mesh.homes[name].lost]
    for event, (node, _) in mesh.witness.told.items():
        lost = node != name or any(event in past.attempts for past in pasts)
        if event not in outbox.attempts and not lost:
            yield Finding(Promise.SENT_IS_KEPT, f"{event} was told sent and is not in the outbox of {name}")
        elif event in outbox.attempts and event not in outbox.shown and not _is_unanswered(mesh, name):
            yield Finding(Promise.SENT_IS_KEPT, f"{event} was told sent and {name} shows it to nobody")
    for event, attempts in outbox.attempts.items():
        if attempts != list(range(1, len(attempts) + 1)):
            yield Finding(Promise.SENT_IS_KEPT, f"{name} wrote attempts {attempts} of {event}")
    for key, events in outbox.keys.items():
        if len(events) > 1:
            yield Finding(Promise.SENT_IS_KEPT, f"{key} stands for {sorted(events)} at {name}")


def _is_unanswered(mesh: SimMesh, name: NodeId) -> bool:
    """Whether it was put out: after a start nobody tells it what it had said, so it shows nothing more.

    What its revocation leaves was read, so it was shown; what stands behind that nobody takes.
    """
    return name in mesh.outcasts


def _acks(name: NodeId, disk: Disk, outbox: OutboxRead) -> Iterator[Finding]:
    for (source, event), acks in outbox.accepted.items():
        if not disk.ever_turns(source, event):
            yield Finding(Promise.ACCEPTED_IS_DURABLE, f"{name} accepted {event} and has no row of it")
        if len(acks) > 1 and not disk.forgotten_entries:
            yield Finding(Promise.ENGAGED_ONCE, f"{name} accepted {event} in {len(acks)} ACKs")
    for (source, event), ends in outbox.ended.items():
        if disk.turns_of(source, event) and len(ends) > 1 and not disk.forgotten_entries:
            yield Finding(Promise.ENGAGED_ONCE, f"{name} ended {event} in {len(ends)} ACKs")


def _deliveries(mesh: SimMesh, name: NodeId, disk: Disk, outbox: OutboxRead) -> Iterator[Finding]:
    for row in disk.deliveries(_STATES, _ALL):
        if not settled(Kind(row.kind), row.state):
            yield Finding(Promise.EVERY_SEND_ENDS, f"{row.event_id} of {name} ended as {row.state}")
        if row.event_id not in outbox.attempts:
            yield Finding(Promise.SENT_IS_KEPT, f"{name} owes {row.event_id}, which is not in its outbox")
        if row.state is DeliveryState.DEAD_LETTER:
            yield from _dead(name, disk, row, outbox)
        if row.state is not DeliveryState.SUPERSEDED and row.node in mesh.members():
            yield from _compared(mesh, name, disk, row)
    missing = [event for event in outbox.owed if not disk.ever_owed(event)]
    for event in missing:
        yield Finding(Promise.EVERY_SEND_ENDS, f"nobody at {name} waits for the end of {event}")


def _compared(mesh: SimMesh, name: NodeId, disk: Disk, row: Delivery) -> Iterator[Finding]:
    """What the sender knows of an obligation with what the node knows that had to meet it."""
    assert row.node is not None
    there = mesh.homes[row.node].disk
    turns = there.ever_turns(name, row.event_id)
    lost = mesh.memories.lost_turns(row.node, name, row)
    if not turns and lost:
        return  # it went back to before it took it, and its sender needs nothing more of it
    needless = row.state is DeliveryState.DEAD_LETTER or row.processed_at_ms is None
    unheard = needless and (skipped(disk, there) or _left_behind(there, row))
    twice = row.node in mesh.twins.of or mesh.memories.dealt_again(row.node, row.event_id)
    ended = [turn for turn in lost if turn.state is TurnState.DONE]
    by_itself = any(turn.error in _BY_THE_NODE or not turn.delivery_count for turn in (*turns, *ended))
    # one of its ends was the node's own, before or after it went back, and the other one an agent's
    unheard = unheard or twice or (bool(ended) and by_itself)
    yield from _agreement(name, row, combined(turns) if turns else None, unheard=unheard)


def _left_behind(there: Disk, row: Delivery) -> bool:
    """Whether its end was said in an epoch that its node has left: who stands nowhere begins behind it."""
    said = [epoch for epoch, entry in there.places_of(row.event_id) if _is_end(entry)]
    return bool(said) and max(said) < there.identity().epoch


def _is_end(entry: Entry) -> bool:
    event = decode_event(entry.body)
    return event.kind == Kind.ACK and decode_payload(event, Ack).status is AckStatus.PROCESSED


def _dead(name: NodeId, disk: Disk, row: Delivery, outbox: OutboxRead) -> Iterator[Finding]:
    if row.event_id not in outbox.letters:
        yield Finding(Promise.EVERY_SEND_ENDS, f"{row.event_id} is dead and {name} wrote no dead letter")
    incident = disk.incident(DEAD, about(row))
    if incident is None or incident.closed_at_ms is not None:
        yield Finding(Promise.EVERY_SEND_ENDS, f"{row.event_id} is dead at {name} without an incident")
    refused = outbox.letters.get(row.event_id) == "refused" and row.accepted_at_ms is None
    if refused and row.error == INBOX_FULL and not is_for_several(row):  # their letters do not say whose
        yield Finding(Promise.EVERY_SEND_ENDS, f"{name} gave up {row.event_id} since an inbox was full")
    if row.error in {"unknown_source", "foreign_agent"}:
        yield Finding(Promise.LIARS_ARE_REFUSED, f"{row.event_id} of {name} was refused as {row.error}")


def _agreement(name: NodeId, row: Delivery, there: Received | None, *, unheard: bool) -> Iterator[Finding]:
    """``unheard``: the answer may stand below the floor where the sender has gone on."""
    claims = (
        row.accepted_at_ms is not None or row.processed_at_ms is not None or row.replied_at_ms is not None
    )
    if there is None:
        if claims and row.state is not DeliveryState.DEAD_LETTER:
            yield Finding(
                Promise.EVERY_SEND_ENDS, f"{row.event_id} is {row.state} at {name}, {row.node} has no row"
            )
        return
    if there.state is not TurnState.DONE:
        yield Finding(Promise.EVERY_SEND_ENDS, f"{row.event_id} is {there.state} at {row.node}")
    elif unheard or not RULES[Kind(row.kind)].processed:
        return
    elif row.outcome is not there.outcome and there.outcome is not Outcome.REFUSED:
        says = f"{name} says {row.state} {row.outcome}, {row.node} says {there.outcome}"
        yield Finding(Promise.EVERY_SEND_ENDS, f"{row.event_id}: {says}")


def _incidents(name: NodeId, disk: Disk) -> Iterator[Finding]:
    for incident in disk.incidents(open_only=True):
        if incident.kind == BLOBS_FULL:
            yield Finding(Promise.EVERY_SEND_ENDS, f"{incident.kind} is open at {name}, and there is room")
        if incident.kind in {NEVER_ACCEPTED, NOT_PROCESSED}:
            row = next(
                (row for row in disk.deliveries(_STATES, _ALL) if about(row) == incident.subject), None
            )
            if row is None or settled(Kind(row.kind), row.state):
                yield Finding(
                    Promise.EVERY_SEND_ENDS, f"{name} keeps {incident.kind} of {incident.subject} open"
                )
        if incident.kind == "quarantined" and incident.subject.split("/")[0] in mesh_names(disk):
            yield Finding(
                Promise.LIARS_ARE_REFUSED, f"{name} quarantined {incident.subject}: {incident.detail}"
            )


def mesh_names(disk: Disk) -> set[str]:
    """Honest outboxes that were read here, and the own one: all but those of liars."""
    return {source for source in (*disk.cursors(), disk.identity().node) if source.startswith("n")}


def _turns(mesh: SimMesh, name: NodeId, disk: Disk) -> Iterator[Finding]:
    for agent in mesh.residents(name):
        for row in disk.inbox(agent.name, done=True, limit=_ALL):
            yield from _turn(mesh, name, row)


def _turn(mesh: SimMesh, name: NodeId, row: Received) -> Iterator[Finding]:
    within_ms = mesh.trips.within_ms(name, row.source, row.engaged_at_ms or 0)
    one_time = {Fault.SKEW, Fault.JUMP, Fault.CLOCK_STOP}.isdisjoint(mesh.plan.faults)
    if one_time and row.engaged_at_ms is not None and row.engaged_at_ms >= row.expires_at_ms + within_ms:
        yield Finding(Promise.ENGAGED_ONCE, f"{name} engaged {row.event_id} after it had expired")
    if row.error == "superseded" and row.share is not Share.SOLE:
        what = f"{name} lost {row.event_id}, which is for several, since another node was asked"
        yield Finding(Promise.EVERY_SEND_ENDS, what)
    if row.source not in mesh.homes:
        if row.delivery_count:
            yield Finding(Promise.LIARS_ARE_REFUSED, f"{name} engaged {row.event_id} of {row.source}")
        return
    sent = [owed for past in mesh.homes[row.source].histories() for owed in past.ever_owed(row.event_id)]
    if not sent:
        yield Finding(
            Promise.EVERY_SEND_ENDS, f"{name} took {row.event_id}, which {row.source} does not know"
        )
    elif row.error == "cancelled" and all(each.dead_at_ms is None for each in sent):
        yield Finding(
            Promise.LIARS_ARE_REFUSED, f"{name} cancelled {row.event_id}, which {row.source} did not"
        )


def _cursor(
    mesh: SimMesh, disk: Disk, writer: Disk, outbox: OutboxRead, own: OutboxRead
) -> Iterator[Finding]:
    name, source = disk.identity().node, writer.identity().node
    upto = disk.head() if source == name else disk.cursor(source)
    if upto is None:
        return
    if source in mesh.outcasts:
        writer, outbox = _read_of(mesh, source, (upto.epoch, upto.seq, upto.hash), outbox)
    if source != name and upto.hash != outbox.hashes.get((upto.epoch, upto.seq)):
        yield Finding(Promise.CURSORS_ARE_HONEST, f"{name} stands at another {upto.seq} of {source}")
    for place, event in outbox.deliverable(name):
        handled = _handled(disk, own, source, event) or missed(disk, writer, event.event_id)
        if not handled and _starts_behind(writer, place):
            rows = [row for row in writer.ever_owed(event.event_id) if row.node == name]
            handled = bool(rows) and all(_needs_no_reader(mesh, source, row) for row in rows)
        if place <= (upto.epoch, upto.seq) and not handled:
            yield Finding(
                Promise.CURSORS_ARE_HONEST, f"{name} passed {event.event_id} of {source} and did not take it"
            )


def _read_of(
    mesh: SimMesh, source: NodeId, upto: tuple[Epoch, Seq, bytes], outbox: OutboxRead
) -> tuple[Disk, OutboxRead]:
    """The history in which a reader stands: who was put out leads nobody from one that it went back from."""
    epoch, seq, digest = upto
    home = mesh.homes[source]
    for writer in home.lost:
        past = read_outbox(writer)
        if outbox.hashes.get((epoch, seq)) != digest and past.hashes.get((epoch, seq)) == digest:
            return writer, past
    return home.disk, outbox


def _starts_behind(writer: Disk, place: Place) -> bool:
    """Whether who stands nowhere, or in another history, begins behind a place: at the floor, or in the
    current epoch, which has all over again that had no end.
    """
    floor = writer.floor()
    return place[0] != writer.identity().epoch or (floor is not None and place <= (floor.epoch, floor.seq))


def _needs_no_reader(mesh: SimMesh, source: NodeId, row: Delivery) -> bool:
    """Whether its sender had given it up, or knows what its reader did with it and has forgotten since."""
    assert row.node is not None
    return row.state in ENDED or bool(mesh.memories.lost_turns(row.node, source, row))


def _handled(disk: Disk, own: OutboxRead, source: NodeId, event: Event) -> bool:
    return bool(disk.ever_turns(source, event.event_id)) or (source, event.event_id) in own.refused


def _reached(mesh: SimMesh) -> Iterator[Finding]:
    """What is for several has a turn for each agent that it means, where nobody comes or goes."""
    if {Fault.REMOVAL, Fault.RETENTION} & set(mesh.plan.faults):
        return
    for source in mesh.members():
        for row in mesh.homes[source].disk.deliveries(_STATES, _ALL):
            if not is_for_several(row) or row.accepted_at_ms is None or row.node not in mesh.members():
                continue
            pasts = mesh.homes[row.node].histories()
            taken = {turn.to_agent for past in pasts for turn in past.turns_of(source, row.event_id)}
            meant = {agent.name for agent in mesh.agents[row.node]} - {row.from_agent}
            if row.to_agent != "*":
                meant &= {AgentId(name) for name in row.to_agent.split(",")}
            if taken < meant:
                what = f"{row.event_id} did not reach {sorted(meant - taken)} of {row.node}"
                yield Finding(Promise.EVERY_SEND_ENDS, what)


def _lies(name: NodeId, disk: Disk, liars: Sequence[Liar]) -> Iterator[Finding]:
    for row in disk.deliveries(_STATES, _ALL):
        if row.error == STOLEN:
            yield Finding(Promise.LIARS_ARE_REFUSED, f"{name} believed a false ACK of {row.event_id}")
    cursor = disk.cursor(NodeId(STRANGER))
    if cursor is not None:
        yield Finding(Promise.MEMBERS_ONLY, f"{name} read {STRANGER}, who is no member")
    for liar in liars:
        read = disk.cursor(liar.node)
        kept = {row.seq for row in disk.quarantined() if row.source == liar.node}
        for seq, target in liar.plain:
            if target == name and read is not None and read.seq >= seq and seq not in kept:
                yield Finding(Promise.LIARS_ARE_REFUSED, f"{name} kept no lie of {liar.name} at {seq}")
        if read is not None and liar.heads().get(read.seq) != read:
            yield Finding(Promise.LIARS_ARE_REFUSED, f"{name} took a page of {liar.name} that fits no chain")
