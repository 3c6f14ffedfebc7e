"""I8: who has forgotten goes on in a new epoch, two histories are told of, and nobody honest is blamed."""

from collections.abc import Iterator, Mapping, Set

from gateway.engine.epochs import COPY_RUNS, OWN_FORK, STREAM_EPOCH
from gateway.engine.forks import FORK, RECREATED, ROLLBACK
from gateway.engine.own_stream import Reason
from gateway.judging.clocks import Wrong
from gateway.judging.facts import Mesh, NodeFacts
from gateway.judging.faults import Fault, FaultKind
from gateway.judging.pasts import NONE, Past, Pasts, Way
from outbox.chain import Head
from outbox.ids import NodeId, epoch_ordinal
from outbox.records import Incident

_OF_OTHERS = frozenset({FORK, ROLLBACK, RECREATED})
_PROVEN = frozenset({FORK, ROLLBACK})
_OF_ITSELF = frozenset({OWN_FORK, COPY_RUNS, STREAM_EPOCH})
_SLACK_MS = 1_000
"""Between two clocks of one machine that nobody has set, and then some."""


def check_blame(mesh: Mesh, pasts: Pasts = NONE, clocks: Mapping[NodeId, Wrong] = {}) -> Iterator[Fault]:
    """Who blames whom, in all histories; and what became of those who had forgotten."""
    for facts in (*mesh.values(), *(past.lost for past in pasts.all)):
        behind_ms = clocks.get(facts.node, Wrong()).behind_ms + _SLACK_MS
        for incident in facts.incidents:
            yield from _of_itself(facts.node, incident, pasts, behind_ms)
            yield from _of_another(mesh, facts.node, incident, pasts, behind_ms)
    for node, facts in mesh.items():
        for source in facts.doubted:
            if source in mesh:
                yield Fault(FaultKind.UNFINISHED, node, f"it still waits for what {source} remembers")
        yield from _taken_for_liars(mesh, facts)
    for past in pasts.all:
        found = _told(mesh, past) if past.way is Way.CLONE else _epoch(mesh[past.node], past, pasts)
        yield from found


def _of_itself(node: NodeId, incident: Incident, pasts: Pasts, behind_ms: int) -> Iterator[Fault]:
    """A node says so of itself only when something had happened to it; a failed sync is no forgetting."""
    if incident.kind not in _OF_ITSELF or incident.detail.startswith(Reason.FAILED_SYNC):
        return
    if not _had_forgotten(node, incident, pasts, behind_ms):
        yield Fault(FaultKind.FRAMED, node, f"it says {incident.kind} and had forgotten nothing")


def _of_another(
    mesh: Mesh, node: NodeId, incident: Incident, pasts: Pasts, behind_ms: int
) -> Iterator[Fault]:
    """Who was put back by command writes nothing twice: only a copy by hand, or a clone, can be blamed."""
    writer = _writer(incident)
    if incident.kind not in _OF_OTHERS or writer not in mesh:
        return
    twice = Pasts(past for past in pasts.of(writer) if past.way is not Way.BACKUP)
    if not _had_forgotten(writer, incident, twice if incident.kind in _PROVEN else pasts, behind_ms):
        detail = f"{node} says {incident.kind} of {incident.subject}: {incident.detail}"
        yield Fault(FaultKind.FRAMED, writer, detail)


def _taken_for_liars(mesh: Mesh, facts: NodeFacts) -> Iterator[Fault]:
    """Once it goes on in a later epoch, who had forgotten is no liar."""
    for incident in facts.incidents:
        if incident.kind == FORK and incident.closed_at_ms is None and _writer(incident) in mesh:
            detail = f"{facts.node} does not see that it had forgotten: {incident.detail}"
            yield Fault(FaultKind.FRAMED, _writer(incident), detail)


def _had_forgotten(node: NodeId, incident: Incident, pasts: Pasts, behind_ms: int) -> bool:
    return any(past.since_ms - behind_ms <= incident.opened_at_ms for past in pasts.of(node))


def _epoch(now: NodeFacts, past: Past, pasts: Pasts) -> Iterator[Fault]:
    """A restore begins a new epoch at once; a copy by hand does when others show what it has forgotten."""
    base, after = past.base.head, pasts.after(past, now)
    if past.way is Way.BACKUP:
        at = after.last_of(base.epoch)
        if at > base.seq or not _is_later(after, past):
            detail = f"it was restored at {base.seq} of {base.epoch} and went on there to {at}"
            yield Fault(FaultKind.OUTBOX, past.node, detail)
    elif any(_is_beyond(read, past) for read in past.read.values()) and not _is_later(now, past):
        detail = f"others had read beyond {base.seq} of {base.epoch}, to which it was put back by hand"
        yield Fault(FaultKind.UNREPORTED, past.node, f"{detail}, and it goes on there")


def _told(mesh: Mesh, past: Past) -> Iterator[Fault]:
    """Both histories of a home that ran twice were shown: its operator is told, and if one reader has a proof
    all others know it."""
    now, base = mesh[past.node], past.base.head
    both = min(now.shown_of(base.epoch), past.lost.shown_of(base.epoch)) > base.seq
    if both and not _has(now, _OF_ITSELF, None):
        yield Fault(FaultKind.UNREPORTED, past.node, "it was not told that it ran twice")
    others = [facts for node, facts in mesh.items() if node != past.node]
    if any(_has(facts, _PROVEN, past.node) for facts in others):
        for facts in others:
            if not _has(facts, _PROVEN, past.node):
                yield Fault(
                    FaultKind.UNREPORTED, past.node, f"{facts.node} has not heard that it wrote twice"
                )


def _is_later(facts: NodeFacts, past: Past) -> bool:
    return epoch_ordinal(facts.head.epoch) > epoch_ordinal(past.base.head.epoch)


def _is_beyond(read: Head, past: Past) -> bool:
    return read.epoch == past.base.head.epoch and read.seq > past.base.seq


def _has(facts: NodeFacts, kinds: Set[str], about: NodeId | None) -> bool:
    return any(
        incident.kind in kinds and (about is None or _writer(incident) == about)
        for incident in facts.incidents
    )


def _writer(incident: Incident) -> NodeId:
    return NodeId(incident.subject.partition("/")[0])
