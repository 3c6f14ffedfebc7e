"""Local agents and their idempotency keys in SQL."""

from outbox.ids import AgentId
from outbox.records import LocalAgent, Remembered
from outbox.sql.rows import Asking, Writing
from outbox.tables import AGENTS, REMEMBERED


class AgentReads(Asking):
    """The questions of ``outbox.store.agents``."""

    def agents(self) -> list[LocalAgent]:
        """The agents that live here, by name."""
        return self._rows.all(AGENTS, "ORDER BY name")

    def remembered(self, agent: AgentId, key: str) -> Remembered | None:
        """What this agent used an idempotency key for."""
        return self._rows.find(REMEMBERED, agent, key)


class AgentWrites(Writing, AgentReads):
    """What the writer adds."""

    def put_agent(self, row: LocalAgent) -> None:
        """Insert or replace one."""
        self._rows.put(AGENTS, row)

    def drop_agent(self, name: AgentId) -> None:
        """Forget one; an absent one is fine."""
        self._rows.drop(AGENTS, "WHERE name = ?", name)

    def remember(self, row: Remembered) -> None:
        """Keep it."""
        self._rows.put(REMEMBERED, row)
