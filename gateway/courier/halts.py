"""Sources of which nothing is dealt for now.

There may be a hundred thousand items of one, so nobody looks for them: they stay in line, and each is passed
over when its turn comes. So to halt a source, and to let it go on, takes as long for one item as for many.
"""

from enum import IntEnum

from gateway.courier.item import Item
from outbox.ids import NodeId


class Halt(IntEnum):
    """What is not dealt."""

    NEW = 1
    """What nobody was handed yet."""
    ALL = 2


class Halts:
    """The sources that are halted, for all streams."""

    def __init__(self) -> None:
        self._how: dict[NodeId, Halt] = {}

    def __bool__(self) -> bool:
        return bool(self._how)

    def set(self, source: NodeId, how: Halt | None) -> bool:
        """Halt a source, or with None do not; whether more of it may be dealt than before."""
        before = self._how.pop(source, None)
        if how is not None:
            self._how[source] = how
        return before is not None and (how is None or how < before)

    def stop(self, item: Item) -> bool:
        """Whether an item is not dealt."""
        how = self._how.get(item.id[0])
        return how is not None and (how is Halt.ALL or not item.deliveries)
