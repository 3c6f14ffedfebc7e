"""What a watcher has shown: a row that comes by both ways, by the socket and by reading on, is shown once."""

from collections import OrderedDict
from collections.abc import Iterable

from gateway.api.rows import InboxRow
from gateway.client.limits import SEEN_MAX
from outbox.ids import EventId, NodeId


class Shown:
    """The newest rows; two nodes may send an event under the same id."""

    def __init__(self, rows: Iterable[InboxRow]) -> None:
        self._shown: OrderedDict[tuple[NodeId, EventId], None] = OrderedDict()
        self.new(rows)

    def new(self, rows: Iterable[InboxRow]) -> list[InboxRow]:
        """Those that were not shown yet; they are from now on."""
        return [row for row in rows if self._is_new(row)]

    def _is_new(self, row: InboxRow) -> bool:
        name = row.from_node, row.event_id
        if name in self._shown:
            return False
        self._shown[name] = None
        while len(self._shown) > SEEN_MAX:
            self._shown.popitem(last=False)
        return True
