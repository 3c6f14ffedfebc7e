"""Collects from a home on this machine: its own outbox, and the copies of others that it holds.

Its gateway may run meanwhile.
"""

from collections.abc import Callable, Mapping
from contextlib import closing

from msgspec.structs import replace

from auth.keys import PublicKey
from gateway.home import Home
from gateway.lake.collector import Collected, collect
from gateway.lake.ended import CountedSource
from gateway.lake.exported import FileSource
from gateway.lake.lake import Lake
from gateway.lake.source import Source
from outbox.chain import Checkpoint, Head, Page, genesis
from outbox.errors import NotFound
from outbox.ids import MeshId, NodeId, Seq
from outbox.reader import JournalReader
from outbox.records import Copy, Identity
from stateroom.view import View

Progress = Callable[[NodeId, int], None]
"""``progress(whose outbox, place reached)``: after it is on disk."""


class OwnSource:
    """A journal's own outbox."""

    is_writer = True

    def __init__(self, reader: JournalReader) -> None:
        self.genesis, self.floor, self.read = reader.genesis, reader.floor, reader.read


class CopySource:
    """The copy of another node's outbox that a journal holds, read as if it were the outbox itself.

    Of one that was trimmed the first batch only says, by its signed checkpoint, where the rest follows on.
    """

    is_writer = False

    def __init__(self, reader: JournalReader, stream: Identity) -> None:
        self._reader, self._mesh, self._node = reader, stream.mesh, stream.node
        self._floor: Checkpoint | None = None

    def genesis(self) -> Head:
        """Before the first entry of the oldest epoch of which there is a copy. Raises NotFound."""
        for copy in self._reader.copies():
            if copy.source == self._node:
                return genesis(self._mesh, self._node, copy.epoch)
        raise NotFound(
            f"this home holds no copy of the outbox of {self._node}",
            hint="seeds hold copies of all; others those that `mirror` names in gateway.toml",
        )

    def floor(self) -> Checkpoint | None:
        """The first checkpoint of a copy that begins after the place that was asked for."""
        return self._floor

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """The next page of the copy."""
        copy = self._trimmed(after)
        if copy is None:
            return self._reader.read_copy(self._node, after, entries_max, bytes_max)
        page = self._reader.read_copy(self._node, Head(copy.epoch, Seq(copy.first - 1), b""), 1, 1)
        if page is None:
            return None
        self._floor = page.checkpoint
        return self._reader.read_copy(self._node, page.checkpoint.head, entries_max, bytes_max)

    def _trimmed(self, after: Head) -> Copy | None:
        """The copy that goes on after a place, if what lies between was let go of."""
        for copy in self._reader.copies():
            if copy.source != self._node or copy.epoch < after.epoch:
                continue
            if copy.epoch > after.epoch:
                return copy if copy.first > 1 else None
            if after.seq != copy.last:
                return copy if after.seq + 1 < copy.first else None
        return None


def node_of(home: Home) -> NodeId:
    """Whose home it is. Raises StorageFailed, DatabaseTooNew."""
    with closing(JournalReader.open(home.journal)) as reader:
        return reader.identity().node


def mesh_of(home: Home) -> MeshId:
    """Which mesh it belongs to. Raises StorageFailed, DatabaseTooNew."""
    with closing(JournalReader.open(home.journal)) as reader:
        return reader.identity().mesh


def collect_home(
    home: Home, key: PublicKey, lake: Lake, now_ms: int, progress: Progress = lambda *_: None
) -> tuple[NodeId, Collected]:
    """Whose outbox it is, and what was added of it. Raises as ``collect``, and DatabaseTooNew."""
    with closing(JournalReader.open(home.journal)) as reader:
        stream = reader.identity()
        collected = _collect(OwnSource(reader), lake, stream, key, now_ms=now_ms, progress=progress)
    return stream.node, collected


def collect_file(
    source: FileSource, key: PublicKey, lake: Lake, now_ms: int, progress: Progress = lambda *_: None
) -> Collected:
    """What was added of an exported outbox. Raises as ``collect``, and BadFrame."""
    begins = source.beginning
    stream = Identity(begins.mesh, begins.node, begins.genesis.epoch)
    return _collect(source, lake, stream, key, now_ms=now_ms, progress=progress)


def copied_nodes(home: Home) -> list[NodeId]:
    """Of whose outboxes the home holds copies."""
    with closing(JournalReader.open(home.journal)) as reader:
        return list(dict.fromkeys(copy.source for copy in reader.copies()))


def collect_copies(
    home: Home,
    keys: Mapping[NodeId, PublicKey],
    lake: Lake,
    now_ms: int,
    progress: Progress = lambda *_: None,
    *,
    view: View,
) -> dict[NodeId, Collected]:
    """Add the copies of these nodes' outboxes, each checked with its node's key.

    ``view`` tells who was put out, and how much of its outbox counts. Raises as ``collect``.
    """
    with closing(JournalReader.open(home.journal)) as reader:
        ours = reader.identity()
        return {
            node: _collect_copy(
                reader, replace(ours, node=node), key, lake, view, now_ms=now_ms, progress=progress
            )
            for node, key in keys.items()
        }


def _collect_copy(
    reader: JournalReader,
    stream: Identity,
    key: PublicKey,
    lake: Lake,
    view: View,
    *,
    now_ms: int,
    progress: Progress,
) -> Collected:
    source = CountedSource(CopySource(reader, stream), view, stream.node)
    return _collect(source, lake, stream, key, now_ms=now_ms, progress=progress)


def _collect(
    source: Source, lake: Lake, stream: Identity, key: PublicKey, *, now_ms: int, progress: Progress
) -> Collected:
    return collect(
        source,
        lake,
        stream,
        key.verify,
        now_ms=now_ms,
        progress=lambda seq: progress(stream.node, seq),
        earlier=source,
    )
