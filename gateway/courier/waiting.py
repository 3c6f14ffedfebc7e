"""Items that wait to be dealt: priority first, then first come first served.

Whoever takes an item that must not be dealt now sets it aside, and gives the items of its source back when
they may be: they stand where they stood, before all that joined after them. No step looks at all of them::

    _lines   ──▶ taken                                one line a priority
      │
      └──▶ _aside  ──▶ _fronts ──▶ taken              by source and priority; by priority
              ▲           │
              └───────────┘

What was set aside has joined before all that is left in its line, so fronts come before the line, and of
several fronts the one whose head has waited for longer.
"""

from collections import OrderedDict

from gateway.courier.item import Item, ItemId
from gateway.courier.limits import PRIORITIES
from outbox.ids import NodeId

Line = OrderedDict[ItemId, Item]


class WaitingLine:
    """One line a priority. Each step is O(1), or O(sources) while some were set aside; an OrderedDict, since
    a dict's front is slow to find again.
    """

    def __init__(self) -> None:
        self._lines: list[Line] = [OrderedDict() for _ in range(PRIORITIES)]
        self._aside: dict[tuple[NodeId, int], Line] = {}
        self._fronts: dict[int, list[Line]] = {}
        self._joined = 0

    def __bool__(self) -> bool:
        """Whether there is one to take; what is set aside is none."""
        return any(self._lines) or any(any(fronts) for fronts in self._fronts.values())

    def join(self, item: Item) -> None:
        """Stand at the tail of the item's priority."""
        self._joined += 1
        item.place = self._joined
        self._lines[item.priority][item.id] = item

    def take(self) -> Item | None:
        """The head of the most urgent line that is not empty."""
        for priority, line in enumerate(self._lines):
            front = self._front(priority) if self._fronts else None
            if front or line:
                return (front or line).popitem(last=False)[1]
        return None

    def leave(self, item: Item) -> None:
        """Take an item out of the middle; an absent one is fine."""
        if self._lines[item.priority].pop(item.id, None) is None:
            for line in self._fronts.get(item.priority, ()):
                line.pop(item.id, None)
            aside = self._aside.get((item.id[0], item.priority))
            if aside is not None:
                aside.pop(item.id, None)

    def set_aside(self, item: Item) -> None:
        """One that was just taken waits until its source is given back."""
        self._aside.setdefault((item.id[0], item.priority), OrderedDict())[item.id] = item

    def give_back(self, source: NodeId) -> None:
        """What was set aside of a source may be taken again."""
        for priority in range(PRIORITIES):
            line = self._aside.pop((source, priority), None)
            if line:
                self._fronts.setdefault(priority, []).append(line)

    def _front(self, priority: int) -> Line | None:
        """The one whose head has waited for longest. There are as many as sources that were given back."""
        fronts = [line for line in self._fronts.pop(priority, ()) if line]
        if not fronts:
            return None
        self._fronts[priority] = fronts
        return min(fronts, key=lambda line: next(iter(line.values())).place)
