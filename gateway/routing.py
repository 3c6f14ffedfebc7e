"""Where an event goes (owner first, else a fallback) and whether it may come from there.

Pure functions over the room's View. An agent's record may name fallback nodes, in order, and a grace: when
its owner has been away for longer, the next attempt goes to the first of them that is there.

Source: routing rules of ``docs/PROTOCOL.md``.
"""

from collections.abc import Callable
from enum import Enum
from functools import lru_cache

import msgspec

from gateway.likeness import alike
from outbox.envelope import RouteDecision
from outbox.errors import UnknownRecipient
from outbox.ids import AgentId, NodeId, agent_id, node_id
from outbox.limits import NAMES_REMEMBERED
from stateroom.view import OwnerView, View

Away = Callable[[NodeId], int | None]
"""For how many milliseconds a node has been away; None for one that is not."""

Near = Callable[[AgentId], tuple[str, ...]]
"""Known agents whose names look like one that nobody knows."""

OWNER, FALLBACK = "owner", "fallback"

_PREFIX, _SUFFIX = "agents/", "/inbox"


class Route(msgspec.Struct, frozen=True, gc=False):
    """The agent meant and the node that owns it; no node when it is known but nobody owns it."""

    agent: AgentId
    node: NodeId | None
    owner_epoch: int
    reason: str = OWNER

    def decision(self) -> RouteDecision | None:
        """What the event's trace says about it."""
        if self.node is None:
            return None
        return RouteDecision(self.node, self.owner_epoch, self.reason)


@lru_cache(NAMES_REMEMBERED)
def inbox_stream(agent: AgentId) -> str:
    """The courier stream that delivers to an agent."""
    return f"{_PREFIX}{agent}{_SUFFIX}"


def parse_address(text: str) -> tuple[AgentId, NodeId | None]:
    """``name``, ``name@node`` or ``agents/name/inbox``. Raises InvalidId."""
    if text.startswith(_PREFIX) and text.endswith(_SUFFIX):
        return agent_id(text[len(_PREFIX) : -len(_SUFFIX)]), None
    name, at, node = text.partition("@")
    return agent_id(name), node_id(node) if at else None


def resolve(view: View, text: str, away: Away, near: Near) -> Route:
    """The route of an address. Raises InvalidId; UnknownRecipient with near matches."""
    agent, node = parse_address(text)
    route = choose(view, agent, away)
    if route is None and not view.known(agent):
        raise UnknownRecipient(text, near(agent))
    if node is not None:
        _check_owner(view, text, agent, node)
    return route or Route(agent, None, 0)


def _check_owner(view: View, text: str, agent: AgentId, node: NodeId) -> None:
    owner = view.owner(agent)
    if owner is not None and node != owner.node:
        raise UnknownRecipient(text, (f"{agent}@{owner.node}",))


def choose(
    view: View,
    agent: AgentId,
    away: Away,
    *,
    prefer: NodeId | None = None,
    avoid: frozenset[NodeId] = frozenset(),
) -> Route | None:
    """The node that is to get an agent's event now; None when nobody owns the agent.

    ``prefer`` is where it went before: a fallback that is still there keeps it. ``avoid`` are nodes that have
    said that they do not answer for the agent; only the owner is asked again, or a fallback where there will
    never be an owner. A node whose key was revoked is none of them, however short it has been away.
    """
    owner = view.owner(agent)
    if owner is None:
        return None
    out = view.revoked(owner.node) is not None
    if owner.fallback:
        named = (prefer, *(owner.fallback if out or _is_gone(owner, away) else ()))
        there = [node for node in named if node in owner.fallback and _is_there(view, node, away)]
        willing = [node for node in there if node not in avoid] or (there if out else [])
        if willing:
            return Route(agent, willing[0], owner.owner_epoch, FALLBACK)
    if out:
        return None
    return Route(agent, owner.node, owner.owner_epoch)


def _is_there(view: View, node: NodeId, away: Away) -> bool:
    return away(node) is None and view.revoked(node) is None


def _is_gone(owner: OwnerView, away: Away) -> bool:
    away_ms = away(owner.node)
    return away_ms is not None and away_ms >= owner.grace_ms


def stands_in(view: View, agent: AgentId, node: NodeId) -> bool:
    """Whether an agent's record names a node as its fallback now."""
    owner = view.owner(agent)
    return owner is not None and node in owner.fallback


class Standing(Enum):
    """What the room says of a node that speaks for an agent."""

    OWNER = "owner"
    """It owns the agent, or did when it spoke."""
    UNKNOWN = "unknown"
    """No record for that ownership has come yet."""
    FOREIGN = "foreign"
    """A record contradicts it."""


def standing(view: View, agent: AgentId, node: NodeId, owner_epoch: int) -> Standing:
    """Judge an event of an agent by the ownership it was sent under, not by today's.

    A removed agent was still its node's when it spoke, and one that has moved on was its former node's;
    epoch 0 was nobody's. A fallback that the owner names speaks for the agent too.
    """
    record = view.agents.get(agent)
    if record is None:
        return Standing.UNKNOWN
    if record.node == node or node in record.fallback or 0 < owner_epoch < record.owner_epoch:
        return Standing.OWNER
    return Standing.UNKNOWN if owner_epoch > record.owner_epoch else Standing.FOREIGN


def near(view: View, agent: AgentId) -> tuple[str, ...]:
    """Up to three agents that live somewhere and whose names look like this one."""
    return alike(agent, (name for name, owner in view.agents.items() if owner.status == "active"), 3)
