"""Collects the outbox of a home on this machine; its gateway may run meanwhile."""

from contextlib import closing

from auth.keys import PublicKey
from gateway.home import Home
from gateway.lake.collector import Collected, collect
from gateway.lake.lake import Lake
from outbox.ids import NodeId
from outbox.reader import JournalReader


def node_of(home: Home) -> NodeId:
    """Whose home it is. Raises StorageFailed, DatabaseTooNew."""
    with closing(JournalReader.open(home.journal)) as reader:
        return reader.identity().node


def collect_home(home: Home, key: PublicKey, lake: Lake, now_ms: int) -> tuple[NodeId, Collected]:
    """Whose outbox it is, and what was added of it. Raises as ``collect``, and DatabaseTooNew."""
    with closing(JournalReader.open(home.journal)) as reader:
        stream = reader.identity()
        collected = collect(reader, lake, stream, key.verify, now_ms=now_ms, progress=lambda _: None)
    return stream.node, collected
