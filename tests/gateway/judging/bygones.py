"""The small run of ``stories`` in which ``lab`` went back: it had replied to 1 and ended it, and forgot both.

What it was put back to has the first two entries, in which it accepts 1 and 3. It goes on in a second epoch.
"""

from msgspec.structs import replace

from gateway.engine.doubts import POSSIBLE_DUPLICATE
from gateway.judging.facts import NodeFacts, Said, ledger
from gateway.judging.pasts import Past, Pasts, Way
from gateway.judging.witness import Witness
from outbox.chain import Head
from outbox.ids import Epoch, EventId, NodeId, Seq
from outbox.kinds import Kind
from outbox.records import Incident, TurnState
from tests.gateway.judging.stories import ASKED, EPOCH, LAB, START_MS, VPS, mesh, saw, witness

SECOND = Epoch("000002-000000000000")
SINCE_MS = START_MS + 1_000
ORDER = 1_000
"""Of the witness: far behind the story."""


def base() -> NodeFacts:
    facts = mesh()[LAB]
    rows = [replace(row, state=TurnState.QUEUED, outcome=None) for row in facts.received.values()]
    return replace(facts, outbox=facts.outbox[:2], received=ledger(rows), deliveries={})


def past(**changes: object) -> Past:
    whole = Past(
        node=LAB,
        way=Way.BACKUP,
        order=ORDER,
        since_ms=SINCE_MS,
        base=base(),
        lost=mesh()[LAB],
        accepted={VPS: frozenset({ASKED})},
        read={VPS: mesh()[LAB].head},
    )
    return replace(whole, **changes)


def said(seq: int, epoch: Epoch = SECOND) -> Said:
    return Said(
        epoch=epoch, seq=Seq(seq), digest=bytes([seq]) * 32, event_id=EventId(f"evt_{seq:032x}"),
        kind=Kind.SIGNAL, attempt=1, to=(), at_ms=SINCE_MS,
    )  # fmt: skip


def present(*incidents: tuple[str, str], epoch: Epoch = SECOND, seq: int = 1) -> dict[NodeId, NodeFacts]:
    """All journals at the end, all of them read; ``lab`` has these incidents."""
    facts = base()
    now = replace(facts, outbox=(*facts.outbox, said(seq, epoch)), incidents=opened(*incidents))
    others = {node: replace(other, cursors={LAB: now.head}) for node, other in mesh().items()}
    return {**others, LAB: now}


def opened(*incidents: tuple[str, str], at_ms: int = SINCE_MS + 1) -> tuple[Incident, ...]:
    return tuple(Incident(kind=kind, subject=about, opened_at_ms=at_ms) for kind, about in incidents)


def again(*, ends: int = 1) -> Witness:
    """The story, and then 1 is dealt once more, by a node that has forgotten its end."""
    seen = witness()
    for _ in range(ends - 1):
        seen.settled("bo", ASKED)
    while seen.mark() < ORDER:
        pass
    saw(seen, ASKED, count=2)
    return seen


def gave_up(*pasts: Past) -> Pasts:
    return Pasts(pasts or (past(),))


REPORTED = (POSSIBLE_DUPLICATE, ASKED)
HEAD = Head(EPOCH, Seq(2), base().outbox[-1].digest)
