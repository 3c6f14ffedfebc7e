"""I3 across the death of a process: a lease that was live when it died is live when it starts again.

Judged by one clock, of whoever watches. A gateway may be slow to hand over and a watcher slow to see, so only
turns that were seen shortly before a death count: their leases had most of their time left.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec

from gateway.judging.faults import Fault, FaultKind
from gateway.judging.pasts import NONE, Pasts
from gateway.judging.witness import Account, Sighting
from outbox.ids import NodeId

SEEN_BEFORE_DEATH_MS = 800
"""A turn that was handed over so shortly before a death was not due for another hand-over."""


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """One process of a gateway, from before its start to after its death."""

    node: NodeId
    began_ms: int
    ended_ms: int | None = None
    """None while it runs."""


def check_leases(
    lives: Iterable[Life], account: Account, lease_ms: int, pasts: Pasts = NONE
) -> Iterator[Fault]:
    """No turn is dealt anew sooner than a lease after a start, when somebody had it at the death before.

    A node that was put back in between has forgotten the lease.
    """
    back = {(gave.agent, gave.event_id, gave.lease_id) for gave in account.returns}
    turns: dict[tuple[NodeId, str], list[Sighting]] = defaultdict(list)
    for turn in account.sightings:
        turns[turn.node, turn.event_id].append(turn)
    by_node: dict[NodeId, list[Life]] = defaultdict(list)
    for life in lives:
        by_node[life.node].append(life)
    for (node, event), seen in turns.items():
        for before, after in pairwise(seen):
            if before.lease_id == after.lease_id or (before.agent, event, before.lease_id) in back:
                continue
            if pasts.parted(node, before.order, after.order):
                continue
            if _too_soon(by_node[node], before.at_ms, after.at_ms, lease_ms):
                detail = f"dealt again at {node} (delivery {after.delivery_count}) while its lease was live"
                yield Fault(FaultKind.TURN, event, detail)


def _too_soon(lives: list[Life], before_ms: int, after_ms: int, lease_ms: int) -> bool:
    """Whether one process handed it over shortly before its death and the very next one did so again."""
    for old, new in pairwise(lives):
        assert old.ended_ms is not None, "the next one has begun"
        held = max(old.began_ms, old.ended_ms - SEEN_BEFORE_DEATH_MS) <= before_ms < new.began_ms
        if held and new.began_ms <= after_ms < new.began_ms + lease_ms:
            return True
    return False
