"""For which agent a request acts: an agent for itself, an admin for any agent that lives here."""

from auth.scopes import Admin, AsAgent, may_act_as
from auth.scopes import Scope as Principal
from gateway.endpoints.desk import LocalDesk
from gateway.endpoints.errors import BadRequest, Forbidden
from gateway.likeness import alike
from outbox.errors import NotFound
from outbox.ids import AgentId, agent_id


def acting_agent(desk: LocalDesk, principal: Principal, named: str | None) -> AgentId:
    """The agent of a request; ``named`` is its ``agent`` field or parameter.

    Raises BadRequest (an admin named none), InvalidId, Forbidden (another agent), NotFound (not here).
    """
    match principal:
        case AsAgent(name):
            agent = name if named is None else agent_id(named)
        case Admin():
            if named is None:
                raise BadRequest("say for which agent", hint="add the field or parameter agent")
            agent = agent_id(named)
    if not may_act_as(principal, agent):
        raise Forbidden(f"this token does not speak for {agent}", hint="use the token of that agent")
    if isinstance(principal, Admin):
        _need_resident(agent, [row.name for row in desk.reader.agents()])
    else:
        desk.activity.note(agent, desk.clock.wall_ms())
    return agent


def _need_resident(agent: AgentId, residents: list[AgentId]) -> None:
    if agent not in residents:
        near = alike(agent, residents, 1)
        hint = f"did you mean {near[0]}?" if near else "gateway agents shows who lives where"
        raise NotFound(f"{agent} does not live on this node", hint=hint)


def need_admin(principal: Principal) -> None:
    """Raises Forbidden."""
    if not isinstance(principal, Admin):
        raise Forbidden("only the operator of this node may do this", hint="use the Unix socket of the home")


def sees(principal: Principal, *agents: AgentId | None) -> bool:
    """Whether a row about these agents may be shown."""
    return isinstance(principal, Admin) or any(
        agent is not None and may_act_as(principal, agent) for agent in agents
    )
