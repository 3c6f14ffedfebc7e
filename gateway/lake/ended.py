"""Outboxes of nodes that were put out: what of them a collector takes, from whoever holds a copy.

Up to the place that the revocation names all counts, for a lake as for a gateway; what stands behind it is
nobody's word, and is not read. Whose name came back with another key is read as the node that it is now.
"""

from auth.keys import readable_key
from gateway.clock import Clock
from gateway.door import STATE_ROOM
from gateway.engine.revoked import left_of
from gateway.home import Home
from gateway.lake.source import Source
from gateway.rooms import STATE_MAPS, verify_raw
from outbox.chain import Checkpoint, Head, Page, Verify
from outbox.ids import MeshId, NodeId, Seq
from stateroom.bodies import RoomMap
from stateroom.index import Index
from stateroom.reading import stored_values
from stateroom.view import View

_JUDGED = frozenset({RoomMap.ADMISSIONS, RoomMap.REVOCATIONS})
"""What a revocation stands on: itself, and whose key it is."""


class CountedSource:
    """An outbox as far as the mesh takes it."""

    def __init__(self, source: Source, view: View, node: NodeId) -> None:
        self._source, self._view, self._node = source, view, node
        self.is_writer = source.is_writer
        self.genesis, self.floor = source.genesis, source.floor

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """As ``Source``; nothing behind the end."""
        page = self._source.read(after, entries_max, bytes_max)
        return page and left_of(self._view, self._node, page)


def end_of(view: View, node: NodeId) -> Checkpoint | None:
    """The last place that counts of a node that was put out; None for one that is admitted, or has none."""
    word = view.revoked(node)
    return word.last if word is not None else None


def verify_of(view: View, node: NodeId) -> Verify | None:
    """What the outbox of a node is checked with: its key, or the one that it had until it was put out."""
    known = view.node(node) or view.revoked(node)
    key = readable_key(known.public_key) if known is not None else None
    return key.verify if key is not None else None


def ends(view: View) -> dict[NodeId, Seq]:
    """Who was put out, and where its outbox ends; 0: nothing of it counts."""
    words = {node: view.revoked(node) for node in view.revocations}
    return {
        node: word.last.seq if word.last is not None else Seq(0)
        for node, word in words.items()
        if word is not None
    }


def home_view(home: Home, mesh: MeshId, clock: Clock) -> View:
    """Who is admitted and who was put out, by the state room of a home, whether or not its gateway runs.

    Raises StorageFailed.
    """
    index = Index(mesh, verify_raw)
    if home.room.exists():
        values = stored_values(
            home.room, STATE_ROOM, STATE_MAPS, lambda: int.from_bytes(clock.entropy(4)) >> 1
        )
        for value in values:
            if value.map in _JUDGED:
                index.offer(value.map, value.key, value.value)
    return index.view({})
