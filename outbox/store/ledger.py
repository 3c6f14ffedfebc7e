"""The receiver's side: what came for local agents, and what was done about it."""

from typing import Protocol

from outbox.ids import AgentId, EventId, NodeId
from outbox.records import Received


class LedgerStore(Protocol):
    """One row for each event, by the node that sent it: two nodes may send the same id."""

    def received(self, source: NodeId, event: EventId) -> Received | None:
        """The row of an event that a node sent to a local agent."""
        ...

    def ledger(self, event: EventId) -> list[Received]:
        """The rows of everybody who sent an event under this id, in order of acceptance."""
        ...

    def put_received(self, row: Received) -> None:
        """Insert or replace it."""
        ...

    def open_turns(self) -> list[Received]:
        """Rows that are held, queued or leased, in order of acceptance (first accepted first)."""
        ...

    def inbox(self, agent: AgentId, *, done: bool, limit: int) -> list[Received]:
        """An agent's newest rows, newest last: the unfinished ones, or with ``done`` all of them."""
        ...

    def count_received(self) -> dict[str, int]:
        """Rows by state."""
        ...
