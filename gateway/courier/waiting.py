"""Items that wait to be dealt: priority first, then first come first served."""

from collections import OrderedDict

from gateway.courier.item import Item, ItemId
from gateway.courier.limits import PRIORITIES


class WaitingLine:
    """One line a priority. Each step is O(1); an OrderedDict, since a dict's front is slow to find again."""

    def __init__(self) -> None:
        self._lines: list[OrderedDict[ItemId, Item]] = [OrderedDict() for _ in range(PRIORITIES)]

    def __bool__(self) -> bool:
        return any(self._lines)

    def join(self, item: Item) -> None:
        """Stand at the tail of the item's priority."""
        self._lines[item.priority][item.id] = item

    def take(self) -> Item | None:
        """The head of the most urgent line that is not empty."""
        for line in self._lines:
            if line:
                return line.popitem(last=False)[1]
        return None

    def leave(self, item: Item) -> None:
        """Take an item out of the middle; an absent one is fine."""
        self._lines[item.priority].pop(item.id, None)
