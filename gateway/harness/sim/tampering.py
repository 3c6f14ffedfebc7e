"""What happens to frames on their way: a relay that changes what it carries, a peer of an older version.

The processes themselves are honest: what leaves them is changed where the network takes it over, as a gateway
with other code would have written it.
"""

from collections.abc import Callable
from hashlib import sha256

from msgspec.structs import replace

from gateway.door import PIPE_ROOM
from gateway.harness.sim.chronicle import Chronicle
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.liar import LIAR, STRANGER
from gateway.harness.sim.topology import Topology
from gateway.harness.sim.wire import WireEnd
from gateway.wire.codec import decode, encode
from gateway.wire.frames import BlobPiece, Entries, Hello
from outbox.chain import Entry, Excerpt, Head, Stub, extend, genesis
from outbox.ids import NodeId, Seq

_TAG_WITHIN = 40
_HONEST = 0.6
"""How often a lying relay tells the truth: it must not be found out by the first page already."""

_Lie = Callable[[Excerpt], Excerpt]


class Tampering:
    """The network's ``alter``."""

    def __init__(self, topology: Topology, dice: Dice, chronicle: Chronicle) -> None:
        self.told: dict[str, int] = {}
        """Lies of the relay that their reader has heard; without those that do no harm."""
        self.on = True
        self._topology = topology
        self._matters = bool(topology.old) or topology.lying is not None
        self._dice = dice
        self._chronicle = chronicle
        self._kept: dict[tuple[str, NodeId], Excerpt] = {}
        self._lies: set[bytes] = set()
        """Frames that are on their way: what a slow connection holds is lost with it."""
        self._heads: dict[tuple[NodeId, Seq], Head] = {}

    def alter(self, end: WireEnd, message: bytes) -> bytes:
        """What goes over the wire in place of a message."""
        if not self._matters:
            return message
        start = message[:_TAG_WITHIN]
        if end.wire.channel != PIPE_ROOM or {LIAR, STRANGER} & set(end.wire.names):
            return message
        if b'"t":"hello"' in start and self._old & set(end.wire.names):
            return _older(end, message)
        lying = self.on and end.owner.name == self._topology.lying
        if lying and b'"t":"blob",' in start:
            return message if self._dice.chance(_HONEST) else _spoilt(message)
        return self._lie(end, message) if lying and b'"t":"entries"' in start else message

    @property
    def _old(self) -> frozenset[NodeId]:
        """Who speaks the version before now."""
        brought_up_to_date = self._topology.refused and not self.on
        return frozenset() if brought_up_to_date else self._topology.old

    def _lie(self, end: WireEnd, message: bytes) -> bytes:
        frame = decode(message)
        assert isinstance(frame, Entries), "its tag says so"
        reader = end.other.owner.name
        before = self._head_before(frame)
        if frame.node == end.owner.name or self._dice.chance(_HONEST):
            self._kept[reader, frame.node] = frame.page
            return message
        lie = self._dice.among(_LIES)
        page = lie(frame.page)
        if lie is _rewritten and before is not None:
            page = _chained(page, before)
        old = self._kept.get((reader, frame.node))
        lied = page != frame.page
        if not lied and old is not None:
            page = old  # honest, and known already
        message = encode(Entries(frame.node, page, frame.ask))
        if lied:
            self._lies.add(message)
        self._chronicle.note(
            end.owner.name, "lies", f"to {reader} of {frame.node}: {lie.__name__.strip('_')}"
        )
        return message

    def heard(self, end: WireEnd, message: bytes) -> None:
        """A process takes a message from its end."""
        if message in self._lies:
            self._lies.discard(message)
            self.told[end.owner.name] = self.told.get(end.owner.name, 0) + 1

    def _head_before(self, frame: Entries) -> Head | None:
        """Where a page follows on, if that is known; what it leads to is known from now on."""
        page = frame.page
        self._heads[frame.node, page.checkpoint.head.seq] = page.checkpoint.head
        first = page.entries[0].seq
        if first == 1:
            return genesis(page.checkpoint.mesh, frame.node, page.epoch)
        return self._heads.get((frame.node, Seq(first - 1)))


def _spoilt(message: bytes) -> bytes:
    """Other bytes of a blob; whoever put them together with honest ones cannot tell whose they were."""
    frame = decode(message)
    assert isinstance(frame, BlobPiece), "its tag says so"
    return encode(replace(frame, data=bytes(len(frame.data))))


def _older(end: WireEnd, message: bytes) -> bytes:
    hello = decode(message)
    assert isinstance(hello, Hello), "its tag says so"
    end.wire.version = 1
    return encode(replace(hello, v=1, versions=(1,)))


def _altered(page: Excerpt) -> Excerpt:
    first, *rest = page.entries
    lie = Entry(first.seq, first.header, (first.body if isinstance(first, Entry) else b"") + b" ")
    return replace(page, entries=(lie, *rest))


def _rewritten(page: Excerpt) -> Excerpt:
    """Another body, and a chain that fits it: only the signature is missing."""
    return _forged(_altered(page))


def _chained(page: Excerpt, before: Head) -> Excerpt:
    return replace(page, checkpoint=replace(page.checkpoint, hash=extend(before, page.entries).hash))


def _dropped(page: Excerpt) -> Excerpt:
    """Renumbered, so that no hole is seen."""
    if len(page.entries) < 2:
        return _altered(page)
    moved = tuple(replace(entry, seq=Seq(entry.seq - 1)) for entry in page.entries[1:])
    return replace(page, entries=moved, checkpoint=replace(page.checkpoint, seq=moved[-1].seq))


def _reordered(page: Excerpt) -> Excerpt:
    if len(page.entries) < 2:
        return _altered(page)
    one, other, *rest = page.entries
    swapped = (replace(other, seq=one.seq), replace(one, seq=other.seq))
    return replace(page, entries=(*swapped, *rest))


def _withheld(page: Excerpt) -> Excerpt:
    """Bodies are left out that somebody needs; where there are none, it is the truth."""
    stubs = tuple(
        Stub(entry.seq, entry.header, sha256(entry.body).digest()) if isinstance(entry, Entry) else entry
        for entry in page.entries
    )
    return replace(page, entries=stubs)


def _forged(page: Excerpt) -> Excerpt:
    return replace(page, checkpoint=replace(page.checkpoint, signature=bytes(64)))


def _skipped(page: Excerpt) -> Excerpt:
    """The beginning is missing."""
    return replace(page, entries=page.entries[1:]) if len(page.entries) > 1 else _forged(page)


def _replayed(page: Excerpt) -> Excerpt:
    """An earlier page in its place, if there was one."""
    return page


_LIES: tuple[_Lie, ...] = (
    _altered,
    _rewritten,
    _dropped,
    _reordered,
    _withheld,
    _forged,
    _skipped,
    _replayed,
)
