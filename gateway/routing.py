"""Where an event goes (owner first) and whether it may come from there. Pure functions over the room's View.

Source: routing rules of ``docs/PROTOCOL.md``.
"""

from difflib import get_close_matches
from enum import Enum

import msgspec

from outbox.envelope import RouteDecision
from outbox.errors import UnknownRecipient
from outbox.ids import AgentId, NodeId, agent_id, node_id
from stateroom.view import View

_PREFIX, _SUFFIX = "agents/", "/inbox"


class Route(msgspec.Struct, frozen=True):
    """The agent meant and the node that owns it; no node when it is known but nobody owns it."""

    agent: AgentId
    node: NodeId | None
    owner_epoch: int

    def decision(self) -> RouteDecision | None:
        """What the event's trace says about it."""
        if self.node is None:
            return None
        return RouteDecision(self.node, self.owner_epoch, "owner")


def inbox_stream(agent: AgentId) -> str:
    """The courier stream that delivers to an agent."""
    return f"{_PREFIX}{agent}{_SUFFIX}"


def parse_address(text: str) -> tuple[AgentId, NodeId | None]:
    """``name``, ``name@node`` or ``agents/name/inbox``. Raises InvalidId."""
    if text.startswith(_PREFIX) and text.endswith(_SUFFIX):
        return agent_id(text[len(_PREFIX) : -len(_SUFFIX)]), None
    name, at, node = text.partition("@")
    return agent_id(name), node_id(node) if at else None


def resolve(view: View, text: str) -> Route:
    """The route of an address. Raises InvalidId; UnknownRecipient with near matches."""
    agent, node = parse_address(text)
    owner = view.owner(agent)
    if owner is None:
        if not view.known(agent):
            raise UnknownRecipient(text, near(view, agent))
        return Route(agent, None, 0)
    if node is not None and node != owner.node:
        raise UnknownRecipient(text, (f"{agent}@{owner.node}",))
    return Route(agent, owner.node, owner.owner_epoch)


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
    epoch 0 was nobody's.
    """
    record = view.agents.get(agent)
    if record is None:
        return Standing.UNKNOWN
    if record.node == node or 0 < owner_epoch < record.owner_epoch:
        return Standing.OWNER
    return Standing.UNKNOWN if owner_epoch > record.owner_epoch else Standing.FOREIGN


def near(view: View, agent: AgentId) -> tuple[str, ...]:
    """Up to three known agents whose names look like this one."""
    candidates = [name for name in view.agents if abs(len(name) - len(agent)) <= 3 and view.owner(name)]
    return tuple(get_close_matches(agent, candidates, n=3, cutoff=0.6))
