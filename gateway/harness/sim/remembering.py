"""The judge of nodes that have forgotten: they go on in a new epoch, say what may be done twice, and nobody
is blamed who did not write twice."""

from collections.abc import Iterator, Set

from gateway.engine.epochs import COPY_RUNS, OWN_FORK, STREAM_EPOCH
from gateway.engine.forks import FORK, RECREATED, ROLLBACK
from gateway.engine.own_stream import Reason
from gateway.harness.sim.disk import Disk
from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.gateway import SimHome
from gateway.harness.sim.mesh import SimMesh
from gateway.harness.sim.plan import Fault
from gateway.harness.sim.twins import Twin
from outbox.ids import NodeId, epoch_ordinal

_OF_OTHERS = frozenset({FORK, ROLLBACK, RECREATED})
_PROVEN = frozenset({FORK, ROLLBACK})
_OF_ITSELF = frozenset({OWN_FORK, COPY_RUNS, STREAM_EPOCH})


def judge_memories(mesh: SimMesh) -> Iterator[Finding]:
    """Every broken promise about what was forgotten."""
    for name in mesh.members():
        home = mesh.homes[name]
        yield from _epochs(mesh, name, home)
        yield from _blame(mesh, name, home)
    for name, twin in mesh.twins.of.items():
        if name in mesh.outcasts:
            continue
        yield from _told(mesh, name, twin)
    if Fault.RETENTION not in mesh.plan.faults:  # whose rows may be gone, and with them what they say
        for again in mesh.memories.unreported():
            what = f"{again.node} dealt {again.event} of {again.source} again and does not say so"
            yield Finding(Promise.ENGAGED_ONCE, what)


def _epochs(mesh: SimMesh, name: NodeId, home: SimHome) -> Iterator[Finding]:
    """A restore begins a new epoch: nothing more is written in the one of the backup."""
    head = home.put_back
    if head is not None:
        at = home.disk.last_of(head.epoch)
        if at > head.seq or epoch_ordinal(home.disk.identity().epoch) <= epoch_ordinal(head.epoch):
            what = f"{name} was restored at {head.seq} of {head.epoch} and went on there to {at}"
            yield Finding(Promise.LIARS_ARE_REFUSED, what)
    if doubted := {*home.disk.doubts()} & {*mesh.homes}:
        waits = f"{name} still waits for what {sorted(doubted)} remember"
        yield Finding(Promise.EVERY_SEND_ENDS, waits)


def _blame(mesh: SimMesh, name: NodeId, home: SimHome) -> Iterator[Finding]:
    """Only who has forgotten can have written twice."""
    for incident in home.disk.incidents(open_only=False):
        failed = incident.detail.startswith(Reason.FAILED_SYNC)
        if incident.kind in _OF_ITSELF and not home.lost and not failed:
            yield Finding(Promise.LIARS_ARE_REFUSED, f"{name} says {incident.kind} and has forgotten nothing")
        writer = mesh.homes.get(NodeId(incident.subject.partition("/")[0]))
        if incident.kind not in _OF_OTHERS or writer is None:
            continue
        blamed = f"{incident.kind} of {incident.subject}: {incident.detail}"
        if not writer.lost:
            yield Finding(Promise.LIARS_ARE_REFUSED, f"{name} blames an honest node: {blamed}")
        elif incident.kind == FORK and incident.closed_at_ms is None:
            yield Finding(
                Promise.LIARS_ARE_REFUSED, f"{name} does not see that a node had forgotten: {blamed}"
            )


def _told(mesh: SimMesh, name: NodeId, twin: Twin) -> Iterator[Finding]:
    """Two histories were written: both operators are told, and what one reader can prove all others know."""
    home, copy = mesh.homes[name], twin.gateway.home.disk
    epoch = twin.copied_at.epoch
    if min(past.shown_to(epoch) for past in home.histories()) > twin.copied_at.seq:
        for who, disk in ((name, home.disk), (f"the copy of {name}", copy)):
            if not _has(disk, _OF_ITSELF, None):
                yield Finding(Promise.LIARS_ARE_REFUSED, f"{who} was not told that it runs twice")
    readers = {
        reader: other.disk
        for reader, other in mesh.homes.items()
        if reader != name and reader in mesh.members()
    }
    if any(_has(disk, _PROVEN, name) for disk in readers.values()):
        for reader, disk in readers.items():
            if not _has(disk, _PROVEN, name):
                yield Finding(Promise.LIARS_ARE_REFUSED, f"{reader} has not heard that {name} wrote twice")


def _has(disk: Disk, kinds: Set[str], about: NodeId | None) -> bool:
    return any(
        incident.kind in kinds and (about is None or incident.subject.partition("/")[0] == about)
        for incident in disk.incidents(open_only=False)
    )
