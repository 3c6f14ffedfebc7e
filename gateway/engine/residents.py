"""The agents that live on this node."""

from collections.abc import Iterable

from gateway.engine.inputs import AddAgent
from gateway.engine.tick import Tick
from outbox.errors import NameTaken, NotFound
from outbox.ids import AgentId
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
            raise NotFound(f"{name} does not live on this node", hint="gateway agents shows who lives where")
        return row

    def add(self, tick: Tick, request: AddAgent) -> LocalAgent:
        """Let it live here, under the owner epoch after that of another owner. Raises NameTaken.

        Coming back to the same node is no change of owner: each one is proved by the ones before, and that
        proof may not grow with every absence.
        """
        owner = tick.view.owner(request.name)
        if owner is not None and owner.node != tick.identity.node:
            raise NameTaken(
                f"{request.name} lives on {owner.node}", hint="choose another name, or remove it there"
            )
        if request.name in self._rows:
            raise NameTaken(
                f"{request.name} lives here already", hint="its token is in the home, under agents/"
            )
        row = LocalAgent(
            name=request.name,
            owner_epoch=_owner_epoch(tick, request.name),
            token_hash=request.token_hash,
            created_at_ms=tick.now.wall_ms,
        )
        tick.store.put_agent(row)
        self._rows[row.name] = row
        return row

    def remove(self, tick: Tick, name: AgentId) -> LocalAgent:
        """It lives here no longer. Raises NotFound."""
        row = self.get(name)
        tick.store.drop_agent(name)
        del self._rows[name]
        return row


def _owner_epoch(tick: Tick, name: AgentId) -> int:
    before = tick.view.agents.get(name)
    if before is None:
        return 1
    return before.owner_epoch + (before.node != tick.identity.node)
