"""A small run that went well, made by hand: what the verdict is tried on, whole and with each fault.

``vps`` writes 1 to ``bo`` at ``lab`` (replied with 2), 3 to ``hermit`` at ``lab`` (waits), 4 to ``clumsy`` at
``mbp`` (failed) and 5 to ``departed`` (nobody's: dead letter).
"""

from collections.abc import Mapping
from hashlib import sha256

from msgspec.structs import replace

from gateway.demo.extras import Trouble
from gateway.demo.verdict import Case
from gateway.judging.facts import Debt, NodeFacts, Said, debts, ledger
from gateway.judging.witness import Promise, Refusal, Witness
from outbox.chain import Head
from outbox.ids import AgentId, Epoch, EventId, NodeId, Seq
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.records import Delivery, DeliveryState, Incident, Received, TurnState

VPS, MBP, LAB = NodeId("vps"), NodeId("mbp"), NodeId("lab")
EPOCH = Epoch("000001-000000000000")
GENESIS = Head(EPOCH, Seq(0), bytes(32))
START_MS = 1_780_000_000_000
ACCEPT_MS = 8_000
PROCESS_MS = 8_000

ASKED, ANSWER, UNANSWERED, FAILING, OWNERLESS = (EventId(f"evt_{n:032x}") for n in range(1, 6))


def ack_id(of: EventId, status: AckStatus) -> EventId:
    return EventId(f"evt_{sha256(f'{of}{status}'.encode()).hexdigest()[:32]}")


class Outbox:
    """Entries of one node, numbered and chained as they come."""

    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.entries: list[Said] = []

    def say(self, event: EventId, kind: Kind, at_ms: int, to: NodeId | None, **more: object) -> None:
        seq = Seq(len(self.entries) + 1)
        digest = sha256(f"{self.node}/{seq}".encode()).digest()
        said = Said(
            epoch=EPOCH, seq=seq, digest=digest, event_id=event, kind=kind, attempt=1, to=(to,) if to else (),
            at_ms=START_MS + at_ms,
        )  # fmt: skip
        self.entries.append(replace(said, **more))

    def accept(self, of: EventId, at_ms: int, to: NodeId) -> None:
        status = AckStatus.ACCEPTED
        self.say(ack_id(of, status), Kind.ACK, at_ms, to, corr_id=of, status=status, outcome=Outcome.OK)

    def end(
        self, of: EventId, at_ms: int, to: NodeId, outcome: Outcome = Outcome.OK, deliveries: int = 1
    ) -> None:
        status = AckStatus.PROCESSED
        self.say(
            ack_id(of, status), Kind.ACK, at_ms, to, corr_id=of, status=status, outcome=outcome,
            deliveries=deliveries,
        )  # fmt: skip


def delivery(event: EventId, to: str, node: NodeId | None, state: DeliveryState, **more: object) -> Delivery:
    row = Delivery(
        event_id=event,
        kind=Kind.MESSAGE,
        from_agent=AgentId("al"),
        to_agent=AgentId(to),
        node=node,
        state=state,
        seq=Seq(1),
        thread_id=event,
        emitted_at_ms=START_MS,
        created_at_ms=START_MS,
        expires_at_ms=START_MS + 10**9,
        next_at_ms=None,
    )
    return replace(row, **more)


def received(event: EventId, to: str, source: NodeId, state: TurnState, **more: object) -> Received:
    row = Received(
        event_id=event,
        source=source,
        epoch=EPOCH,
        seq=Seq(1),
        kind=Kind.MESSAGE,
        to_agent=AgentId(to),
        body=b"{}",
        state=state,
        accepted_at_ms=START_MS + 10,
        expires_at_ms=START_MS + 10**9,
    )
    return replace(row, **more)


def cursors(outboxes: Mapping[NodeId, Outbox], reader: NodeId) -> dict[NodeId, Head]:
    return {
        node: Head(EPOCH, outbox.entries[-1].seq, outbox.entries[-1].digest)
        for node, outbox in outboxes.items()
        if node != reader and outbox.entries
    }


def outboxes() -> dict[NodeId, Outbox]:
    boxes = {node: Outbox(node) for node in (VPS, MBP, LAB)}
    vps, mbp, lab = boxes[VPS], boxes[MBP], boxes[LAB]
    for event, to in ((ASKED, LAB), (UNANSWERED, LAB), (FAILING, MBP), (OWNERLESS, None)):
        vps.say(event, Kind.MESSAGE, 0, to)
    vps.say(ack_id(OWNERLESS, AckStatus.PROCESSED), Kind.DEAD_LETTER, 0, None, corr_id=OWNERLESS)
    lab.accept(ASKED, 10, VPS)
    lab.accept(UNANSWERED, 10, VPS)
    lab.say(ANSWER, Kind.REPLY, 40, VPS, corr_id=ASKED)
    lab.end(ASKED, 40, VPS)
    vps.accept(ANSWER, 50, LAB)
    mbp.accept(FAILING, 10, VPS)
    mbp.end(FAILING, 20, VPS, Outcome.FAILED)
    return boxes


def deliveries() -> dict[Debt, Delivery]:
    state, accepted_at_ms = DeliveryState, START_MS + 12
    rows = (
        delivery(
            ASKED, "bo", LAB, state.REPLIED, accepted_at_ms=accepted_at_ms, replied_at_ms=START_MS + 42,
            processed_at_ms=START_MS + 42, outcome=Outcome.OK,
        ),
        delivery(UNANSWERED, "hermit", LAB, state.ACCEPTED, accepted_at_ms=accepted_at_ms),
        delivery(
            FAILING, "clumsy", MBP, state.PROCESSED, accepted_at_ms=accepted_at_ms,
            processed_at_ms=START_MS + 22, outcome=Outcome.FAILED, error="no",
        ),
        delivery(OWNERLESS, "departed", None, state.DEAD_LETTER, dead_at_ms=START_MS, error="no_owner"),
    )  # fmt: skip
    return debts(rows)


def incidents() -> tuple[Incident, ...]:
    return (
        Incident(kind="accepted_not_processed", subject=UNANSWERED, opened_at_ms=START_MS + 8_000),
        Incident(kind="turn_failed", subject=FAILING, opened_at_ms=START_MS + 22),
        Incident(kind="dead_letter", subject=OWNERLESS, opened_at_ms=START_MS),
    )


def mesh() -> dict[NodeId, NodeFacts]:
    boxes = outboxes()
    done = {
        "state": TurnState.DONE,
        "engaged_at_ms": START_MS + 20,
        "delivery_count": 1,
        "outcome": Outcome.OK,
    }
    answer = received(ANSWER, "al", LAB, **done, kind=Kind.REPLY, accepted_at_ms=START_MS + 50)
    reply = delivery(
        ANSWER, "al", VPS, DeliveryState.ACCEPTED, kind=Kind.REPLY, accepted_at_ms=START_MS + 52,
        created_at_ms=START_MS + 40,
    )  # fmt: skip
    at_lab = (
        received(ASKED, "bo", VPS, **done),
        received(UNANSWERED, "hermit", VPS, TurnState.QUEUED),
    )
    at_mbp = received(FAILING, "clumsy", VPS, **{**done, "outcome": Outcome.FAILED})
    rows = {VPS: deliveries(), MBP: {}, LAB: debts([reply])}
    inboxes = {VPS: ledger([answer]), MBP: ledger([at_mbp]), LAB: ledger(at_lab)}
    return {
        node: NodeFacts(
            node=node, start=GENESIS, outbox=tuple(box.entries), received=inboxes[node],
            deliveries=rows[node], cursors=cursors(boxes, node), incidents=incidents() if node == VPS else (),
        )
        for node, box in boxes.items()
    }  # fmt: skip


def witness() -> Witness:
    seen = Witness()
    sends = (
        (ASKED, "line-1"),
        (UNANSWERED, Trouble.UNANSWERED),
        (FAILING, Trouble.FAILING),
        (OWNERLESS, Trouble.OWNERLESS),
    )
    for event, key in sends:
        seen.heard(promise(event, str(key)))
    saw(seen, ASKED)
    seen.settled(AgentId("bo"), ASKED)
    seen.heard(promise(ANSWER, "line-2", node=LAB, agent="bo"))
    saw(seen, FAILING, agent="clumsy", node=MBP)
    seen.settled(AgentId("clumsy"), FAILING)
    saw(seen, ANSWER, agent="al", node=VPS)
    seen.settled(AgentId("al"), ANSWER)
    seen.refused(Refusal(key="nobody", code="unknown_recipient", what="no agent", hint="did you mean al?"))
    return seen


def promise(
    event: EventId, key: str, *, node: NodeId = VPS, agent: str = "al", repeated: bool = False
) -> Promise:
    return Promise(
        key=key, node=node, agent=AgentId(agent), event_id=event, reply=event == ANSWER, repeated=repeated
    )


def saw(
    seen: Witness,
    event: EventId,
    *,
    agent: str = "bo",
    node: NodeId = LAB,
    count: int = 1,
    resumed: bool = False,
) -> None:
    seen.saw(
        at_ms=START_MS,
        agent=AgentId(agent),
        node=node,
        event_id=event,
        lease_id="lease_1",
        delivery_count=count,
        resumed=resumed,
    )


def case(**changes: object) -> Case:
    whole = Case(
        mesh=mesh(), killed=(), account=witness().account(), accept_ms=ACCEPT_MS, process_ms=PROCESS_MS
    )
    return replace(whole, **changes)


def with_node(facts: NodeFacts) -> Case:
    """The run with one journal in place of the good one."""
    return case(mesh={**mesh(), facts.node: facts})


def without(entries: tuple[Said, ...], seq: int) -> tuple[Said, ...]:
    return tuple(entry for entry in entries if entry.seq != seq)
