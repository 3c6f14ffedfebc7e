"""Addresses that mean several agents, and who is meant now: recipients are fixed when the event is published.

==================  =====================================================================================
``*``               everybody: all agents of all nodes that have one, but for the sender
``group:NAME``      the agents whose records name the group, but for the sender
``ann,bob@vps``     these, each once; the sender too if it is named
==================  =====================================================================================
"""

import msgspec

from gateway.routing import Away, Near, Route, choose, parse_address
from outbox.errors import NotFound, TooLarge, UnknownRecipient
from outbox.ids import AgentId, NodeId, agent_id
from outbox.limits import DESTINATIONS_MAX, RECIPIENTS_MAX
from stateroom.view import View

EVERYBODY = "*"
_GROUP = "group:"


class Audience(msgspec.Struct, frozen=True):
    """Who gets an event."""

    address: str
    """As it is shown."""
    agents: tuple[AgentId, ...]
    """The agents named; none when all that live at the nodes are meant."""
    nodes: tuple[NodeId, ...]


def means_several(text: str) -> bool:
    """Whether an address may mean more than one agent."""
    return text == EVERYBODY or text.startswith(_GROUP) or "," in text


def one_of(text: str) -> str:
    """A list that names one agent only, as that agent's address; any other address as it is.

    Raises InvalidId.
    """
    named: dict[AgentId, str] = {}
    for part in text.split(",") if "," in text else ():
        agent, node = parse_address(part.strip())
        named[agent] = part.strip() if node is not None else named.get(agent, part.strip())
    return next(iter(named.values())) if len(named) == 1 else text


def audience(view: View, text: str, sender: AgentId, away: Away, near: Near) -> Audience:
    """Everybody an address means.

    Raises InvalidId; UnknownRecipient with near matches; NotFound when nobody is meant or one has no owner;
    TooLarge when there are too many.
    """
    if text == EVERYBODY:
        others = [
            owner
            for owner in view.agents.values()
            if owner.status == "active" and owner.agent != sender and view.revoked(owner.node) is None
        ]
        return _checked(Audience(EVERYBODY, (), tuple(sorted({owner.node for owner in others}))), text)
    named = _members(view, text, sender) if text.startswith(_GROUP) else _listed(view, text, near)
    routes = [_route(view, agent, away) for agent in named]
    nodes = sorted({route.node for route in routes if route.node is not None})
    return _checked(Audience(_shown(text, named), named, tuple(nodes)), text)


def _members(view: View, text: str, sender: AgentId) -> tuple[AgentId, ...]:
    group = agent_id(text.removeprefix(_GROUP))
    owners = (owner for owner in view.agents.values() if owner.status == "active" and group in owner.groups)
    there = (owner for owner in owners if owner.fallback or view.revoked(owner.node) is None)
    return tuple(sorted(owner.agent for owner in there if owner.agent != sender))


def _listed(view: View, text: str, near: Near) -> tuple[AgentId, ...]:
    named: dict[AgentId, None] = {}
    for part in text.split(","):
        agent, node = parse_address(part.strip())
        owner = view.owner(agent)
        if not view.known(agent):
            raise UnknownRecipient(part, near(agent))
        if owner is not None and node is not None and owner.node != node:
            raise UnknownRecipient(part, (f"{agent}@{owner.node}",))
        named[agent] = None
    return tuple(named)


def _route(view: View, agent: AgentId, away: Away) -> Route:
    route = choose(view, agent, away)
    if route is None:
        raise NotFound(f"nobody owns {agent} now", hint="leave it out, or write to it alone with --wait")
    return route


def _checked(found: Audience, text: str) -> Audience:
    if not found.nodes:
        raise NotFound(
            f"{text!r} means nobody now", hint="gateway agents shows who lives where, and in which groups"
        )
    if len(found.agents) > RECIPIENTS_MAX or len(found.nodes) > DESTINATIONS_MAX:
        raise TooLarge(
            f"an event goes to at most {RECIPIENTS_MAX} agents and {DESTINATIONS_MAX} nodes",
            hint="write to smaller groups",
        )
    return found


def _shown(text: str, named: tuple[AgentId, ...]) -> str:
    return text if text.startswith(_GROUP) else ",".join(named)
