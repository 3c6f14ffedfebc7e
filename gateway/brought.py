"""What peers have brought and no tick has taken: a line for each peer, and the lines take turns.

What is asked here goes before it, and one tick takes little of it: a peer that sends as fast as it can makes
its own pages wait, nobody else's and no request. A page cannot be taken in part, since its checkpoint vouches
for all of it. A large one leaves a debt, which ticks pay that have requests to do.
"""

from collections import deque
from collections.abc import Callable

from gateway.engine.inputs import FloorRead, Input, LinkDown, LinkUp, PageRead, RelayCaught, StreamKnown
from gateway.limits import BROUGHT_BYTES_OF_ONE, BROUGHT_PAGE_COST, BROUGHT_TICK_MAX, LINE_INPUTS_MAX
from outbox.ids import NodeId


def bringer(item: Input) -> NodeId | None:
    """Over whose link an input came; None for what is asked here, or noticed."""
    match item:
        case PageRead():
            return item.relay if item.relay is not None else item.node
        case FloorRead():
            return item.node
        case LinkUp() | LinkDown() | StreamKnown():
            return item.peer
        case RelayCaught():
            return item.relay
        case _:
            return None


def cost(item: Input) -> int:
    """What it takes to handle, in entries of the usual size."""
    if not isinstance(item, PageRead):
        return 1
    return BROUGHT_PAGE_COST + len(item.page.entries) + item.size // BROUGHT_BYTES_OF_ONE


class Brought:
    """No clock, no loop."""

    def __init__(self) -> None:
        self._lines: dict[NodeId, deque[Input]] = {}
        """Only those in which somebody waits; whose turn it is stands first."""
        self._inputs = 0
        self._debt = 0

    def __len__(self) -> int:
        return self._inputs

    def put(self, peer: NodeId, item: Input) -> None:
        """To the end of this peer's line."""
        self._lines.setdefault(peer, deque()).append(item)
        self._inputs += 1

    def is_full(self, peer: NodeId) -> bool:
        """Whether more of this peer has to wait where it comes from."""
        return len(self._lines.get(peer, ())) >= LINE_INPUTS_MAX

    def take(self, *, asked: bool) -> list[Input]:
        """A tick's share, one of each peer in turns; ``asked``: the tick has requests to do as well."""
        left = BROUGHT_TICK_MAX - (self._debt if asked else 0)
        taken = []
        while self._lines and left > 0:
            item = self._next()
            taken.append(item)
            left -= cost(item)
        self._debt = max(0, -left)
        return taken

    def _next(self) -> Input:
        peer = next(iter(self._lines))
        line = self._lines.pop(peer)
        item = line.popleft()
        self._inputs -= 1
        if line:
            self._lines[peer] = line
        return item

    def withdraw(self, unwanted: Callable[[Input], bool]) -> list[Input]:
        """Take out those of some kind."""
        lines, self._lines, self._inputs = self._lines, {}, 0
        out = []
        for peer, line in lines.items():
            for item in line:
                if unwanted(item):
                    out.append(item)
                else:
                    self.put(peer, item)
        return out
