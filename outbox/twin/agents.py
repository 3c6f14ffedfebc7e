"""Local agents and their idempotency keys in memory."""

from outbox.ids import AgentId
from outbox.records import Identity, LocalAgent, Remembered
from outbox.twin.transaction import Transaction


class TwinAgents(Transaction):
    """``outbox.store.agents`` in dictionaries."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._remembered: dict[tuple[AgentId, str], Remembered] = {}
        self._agents: dict[AgentId, LocalAgent] = {}

    def agents(self) -> list[LocalAgent]:
        """The agents that live here, by name."""
        return [row for _, row in sorted(self._agents.items())]

    def put_agent(self, row: LocalAgent) -> None:
        """Insert or replace one."""
        self._set(self._agents, row.name, row)

    def drop_agent(self, name: AgentId) -> None:
        """Forget one; an absent one is fine."""
        self._drop(self._agents, name)

    def remembered(self, agent: AgentId, key: str) -> Remembered | None:
        """What this agent used an idempotency key for."""
        return self._remembered.get((agent, key))

    def remember(self, row: Remembered) -> None:
        """Keep it."""
        self._set(self._remembered, (row.agent, row.key), row)
