"""What is held of other outboxes, as links show it: the extent of each copy, its newest pages in memory."""

from collections.abc import Iterable

from gateway.engine.effects import CopyChanged
from gateway.feed import Feed
from gateway.limits import COPY_FEED_BYTES_MAX
from outbox.chain import Head, Page
from outbox.ids import NodeId
from outbox.records import Copy


class Copies:
    """The latest epoch's copy of each node."""

    def __init__(self, copies: Iterable[Copy]) -> None:
        self._copies = {copy.source: copy for copy in copies}  # of one node the latest epoch comes last
        self._feeds: dict[NodeId, Feed] = {}

    def changed(self, change: CopyChanged) -> None:
        """A copy grew, was trimmed, or is gone."""
        node, copy, page = change.node, change.copy, change.page
        if copy is None:
            self._copies.pop(node, None)
            self._feeds.pop(node, None)
            return
        before = self._copies.get(node)
        self._copies[node] = copy
        if page is None:
            return
        if before is None or before.number != copy.number or node not in self._feeds:
            self._feeds[node] = Feed(_head(copy), COPY_FEED_BYTES_MAX)
        self._feeds[node].push(page)

    def nodes(self) -> list[NodeId]:
        """Whose outboxes are here, by name."""
        return sorted(self._copies)

    def get(self, node: NodeId) -> Copy | None:
        """What is here of a node's outbox."""
        return self._copies.get(node)

    def after(self, at: NodeId, seq: int) -> Page | None:
        """What follows a position in the latest epoch; None when it is not in memory."""
        feed = self._feeds.get(at)
        return feed.after(seq) if feed is not None else None


def _head(copy: Copy) -> Head:
    return Head(copy.epoch, copy.last, copy.hash)
