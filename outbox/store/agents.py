"""The agents that live here, and the idempotency keys they used."""

from typing import Protocol

from outbox.ids import AgentId
from outbox.records import LocalAgent, Remembered


class AgentStore(Protocol):
    """Rows by the name of the agent."""

    def remembered(self, agent: AgentId, key: str) -> Remembered | None:
        """What this agent used an idempotency key for."""
        ...

    def remember(self, row: Remembered) -> None:
        """Keep it."""
        ...

    def agents(self) -> list[LocalAgent]:
        """The agents that live here."""
        ...

    def put_agent(self, row: LocalAgent) -> None:
        """Insert or replace one."""
        ...

    def drop_agent(self, name: AgentId) -> None:
        """Forget one; nothing happens when it is not there."""
        ...
