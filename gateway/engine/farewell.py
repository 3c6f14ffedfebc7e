"""A node is put out: that is told once, and what it is owed ends, in each tick a bounded part of it."""

from gateway.engine import recall
from gateway.engine.inputs import Request
from gateway.engine.limits import ENDED_MAX
from gateway.engine.revoked import REVOKED, check_here, is_read
from gateway.engine.tick import Tick
from gateway.engine.turns import Turns
from gateway.engine.unowed import end


def check(tick: Tick, item: Request) -> None:
    """Raises NodeRevoked when an agent asks and this node may speak for nobody any more."""
    check_here(tick.view, tick.identity.node, item)


def see(tick: Tick, turns: Turns) -> None:
    """A new view: tell of who is out, and wait for nothing that will not come."""
    for node in tick.peers.endings.see(tick.view, tick.identity.node, tick.now.mono_ms):
        word = tick.view.revoked(node)
        assert word is not None
        tick.note_incident(REVOKED, f"{node}/{word.next_epoch}", f"by {word.by}: {word.reason}".rstrip(": "))
        tick.peers.forget(node)
        turns.withheld.go_on(node, tick.now)
        if is_read(tick.view, node, tick.store.cursor(node)):
            tick.peers.endings.end(node)


def end_some(tick: Tick, turns: Turns) -> None:
    """End what revoked nodes are owed, as much as one tick may look at."""
    for node in tick.peers.endings.due(tick.now.mono_ms):
        tick.peers.endings.end(node)
    left, scan = ENDED_MAX, tick.peers.endings.scan
    while left > 0 and (place := scan.next()) is not None:
        if place.node in tick.store.doubts():
            recall.give_up(tick, turns, place.node)
        rows = tick.store.deliveries_in(place.state, place.after, left)
        for row in rows:
            if row.node == place.node:
                end(tick, row)
        scan.went_on(place, rows[-1] if len(rows) == left else None)
        left -= len(rows)
