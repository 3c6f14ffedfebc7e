"""A node is put out: that is told once, and what it is owed ends, in each tick a bounded part of it."""

from msgspec.structs import replace

from gateway.engine import recall
from gateway.engine.errands import Task
from gateway.engine.revoked import REVOKED, is_read
from gateway.engine.standstill import flows
from gateway.engine.sweep import Sweep
from gateway.engine.tick import Tick
from gateway.engine.turns import Turns
from gateway.engine.unowed import end
from outbox.ids import NodeId
from outbox.records import DeliveryState, Errand

_OPEN = (DeliveryState.EMITTED, DeliveryState.RETRY_PENDING, DeliveryState.ACCEPTED)


def see(tick: Tick, turns: Turns) -> None:
    """A new view: tell of who is out, and wait for nothing that will not come."""
    for node in tick.peers.endings.see(tick.view, tick.identity.node, tick.now.mono_ms):
        word = tick.view.revoked(node)
        assert word is not None
        tick.note_incident(REVOKED, f"{node}/{word.next_epoch}", f"by {word.by}: {word.reason}".rstrip(": "))
        tick.peers.forget(node)
        turns.withheld.go_on(node, tick.now)
        if is_read(tick.view, node, tick.store.cursor(node)):
            _begin(tick, turns, node)


def read_on(tick: Tick, turns: Turns, node: NodeId) -> None:
    """A page of a node was handled: it may have been the last one."""
    if tick.peers.endings.awaits(node) and is_read(tick.view, node, tick.store.cursor(node)):
        _begin(tick, turns, node)


def give_up(tick: Tick, turns: Turns) -> None:
    """Wait no longer for what nobody has brought."""
    for node in tick.peers.endings.due(tick.now.mono_ms):
        _begin(tick, turns, node)


def _begin(tick: Tick, turns: Turns, node: NodeId) -> None:
    """Nothing more will be heard of a node. A new engine looks once more, or goes on where one had begun."""
    tick.peers.endings.end(node)
    flows(tick, node)  # no link of this process ends what the process before it has told of
    if (Task.ENDING, node) not in tick.errands:
        if node in tick.store.doubts():
            recall.give_up(tick, turns, node)
        tick.errands.begin(tick, Ending(Errand(Task.ENDING, node)))


class Ending:
    """End what a node is owed. What comes to stand there again meanwhile, its time ends."""

    def __init__(self, row: Errand) -> None:
        self.row = row
        self._sweep = Sweep(_OPEN, row.detail)

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``. One that has come back with another key is owed what is left."""
        node = NodeId(self.row.subject)
        rows = self._sweep.take(tick.store, most) if tick.view.revoked(node) is not None else []
        for row in rows:
            if row.node == node:
                end(tick, row)
        self.row = replace(self.row, detail=self._sweep.written)
        return len(rows)
