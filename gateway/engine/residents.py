"""The agents that live on this node, and those of other nodes that it stands in for."""

from collections.abc import Iterable

from msgspec.structs import replace

from gateway.engine.errands import Task
from gateway.engine.inputs import AddAgent, SetAgent
from gateway.engine.tick import Tick
from gateway.likeness import alike
from gateway.routing import FALLBACK, stands_in
from outbox.envelope import Event, RouteDecision
from outbox.errors import NameTaken, NotFound, StillLeaving
from outbox.ids import AgentId, NodeId
from outbox.records import LocalAgent


class Residents:
    """The rows of the local agents, in memory: every input asks for one."""

    def __init__(self, rows: Iterable[LocalAgent]) -> None:
        self._rows = {row.name: row for row in rows}

    def __contains__(self, agent: AgentId) -> bool:
        return agent in self._rows

    def names(self) -> list[AgentId]:
        """All of them."""
        return list(self._rows)

    def get(self, name: AgentId) -> LocalAgent:
        """One of them. Raises NotFound."""
        row = self._rows.get(name)
        if row is None:
            near = alike(name, self._rows, 1)
            hint = f"did you mean {near[0]}?" if near else "gateway agents shows who lives where"
            raise NotFound(f"{name} does not live on this node", hint=hint)
        return row

    def add(self, tick: Tick, request: AddAgent) -> LocalAgent:
        """Let it live here, under the owner epoch after that of another owner; or answer for it here.

        Raises NameTaken, StillLeaving; NotFound when it does not name this node as its fallback.

        Coming back to the same node is no change of owner: each one is proved by the ones before, and that
        proof may not grow with every absence.
        """
        if request.name in self._rows:
            raise NameTaken(
                f"{request.name} lives here already", hint="its token is in the home, under agents/"
            )
        if (Task.LEAVING, request.name) in tick.errands:
            raise StillLeaving(request.name)
        if request.stands_in_for is not None:
            owner_epoch = _stand_in_epoch(tick, request.name, request.stands_in_for)
        else:
            _check_free(tick, request.name)
            owner_epoch = _owner_epoch(tick, request.name)
        row = LocalAgent(
            name=request.name,
            owner_epoch=owner_epoch,
            token_hash=request.token_hash,
            created_at_ms=tick.now.wall_ms,
            fallback=",".join(request.fallback),
            grace_ms=request.grace_ms,
            groups=",".join(request.groups),
            stands_in_for=request.stands_in_for or "",
        )
        return self._keep(tick, row)

    def change(self, tick: Tick, request: SetAgent) -> LocalAgent:
        """Let its record say something else. Raises NotFound."""
        row = self.get(request.name)
        if row.stands_in_for:
            raise NotFound(
                f"{row.name} lives on {row.stands_in_for}; this node only stands in for it",
                hint=f"change it on {row.stands_in_for}",
            )
        if request.fallback is not None:
            row = replace(row, fallback=",".join(request.fallback))
        if request.grace_ms is not None:
            row = replace(row, grace_ms=request.grace_ms)
        if request.groups is not None:
            row = replace(row, groups=",".join(request.groups))
        return self._keep(tick, row)

    def recipients(self, tick: Tick, event: Event) -> list[AgentId]:
        """Whom of this node an event is for: the agents it names, or all that live here but its sender."""
        agent, decision = event.to_agent_id, event.trace.route_decision
        if agent is not None:
            return [agent] if self.answers_for(tick, agent, decision) else []
        if event.to_agents:
            named = dict.fromkeys(event.to_agents)
            return [agent for agent in named if self.answers_for(tick, agent, decision)]
        sender = event.source_agent_id if event.source_node_id == tick.identity.node else None
        return [name for name, row in self._rows.items() if not row.stands_in_for and name != sender]

    def answers_for(self, tick: Tick, agent: AgentId, decision: RouteDecision | None) -> bool:
        """Whether an event for the agent may be engaged here: it lives here, or was sent on to us."""
        row = self._rows.get(agent)
        if row is None or not row.stands_in_for:
            return row is not None
        sent_on = decision is not None and decision.reason == FALLBACK
        return sent_on and stands_in(tick.view, agent, tick.identity.node)

    def _keep(self, tick: Tick, row: LocalAgent) -> LocalAgent:
        tick.store.put_agent(row)
        self._rows[row.name] = row
        return row

    def remove(self, tick: Tick, name: AgentId) -> LocalAgent:
        """It lives here no longer. Raises NotFound."""
        row = self.get(name)
        tick.store.drop_agent(name)
        del self._rows[name]
        return row


def _check_free(tick: Tick, name: AgentId) -> None:
    owner, me = tick.view.owner(name), tick.view.node(tick.identity.node)
    if owner is None or owner.node == tick.identity.node:
        return
    if tick.view.revoked(owner.node) is not None:
        if me is None or me.role != "seed":
            hint = "on a seed its operator may let it live there; or choose another name"
            raise NameTaken(f"{name} lived on {owner.node}, whose key was revoked", hint=hint)
    else:
        raise NameTaken(
            f"{name} lives on {owner.node}",
            hint=f"choose another name, remove it there, or stand in for it with --fallback-of {owner.node}",
        )


def _stand_in_epoch(tick: Tick, name: AgentId, owner_node: NodeId) -> int:
    owner = tick.view.owner(name)
    if owner is None or owner.node != owner_node:
        raise NotFound(f"{name} does not live on {owner_node}", hint="gateway agents shows who lives where")
    if tick.identity.node not in owner.fallback:
        raise NotFound(
            f"{name} does not name {tick.identity.node} as its fallback",
            hint=f"on {owner_node}: gateway agent set {name} --fallback {tick.identity.node}",
        )
    return owner.owner_epoch


def _owner_epoch(tick: Tick, name: AgentId) -> int:
    before = tick.view.agents.get(name)
    if before is None:
        return 1
    return before.owner_epoch + (before.node != tick.identity.node)
