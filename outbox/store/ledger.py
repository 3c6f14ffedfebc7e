"""The receiver's side: what came for local agents, and what was done about it."""

from typing import Protocol

from outbox.ids import AgentId, EventId, NodeId
from outbox.records import Received


class LedgerStore(Protocol):
    """One row for each event and agent, by the node that sent it: two nodes may send the same id."""

    def received(self, source: NodeId, event: EventId, agent: AgentId) -> Received | None:
        """The row of an event that a node sent to a local agent."""
        ...

    def turns_of(self, source: NodeId, event: EventId) -> list[Received]:
        """The rows of all local agents that the event came for, in order of acceptance."""
        ...

    def broadcasts(self, after: tuple[int, EventId, NodeId], limit: int) -> list[Received]:
        """Rows of broadcasts after ``(expires_at_ms, event, source)``, in that order and of acceptance."""
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

    def inbox_after(self, agent: AgentId, after: EventId, *, done: bool, limit: int) -> list[Received] | None:
        """The rows that were accepted next after an event's own, oldest first; None when there is no such."""
        ...

    def count_received(self) -> dict[str, int]:
        """Rows by state."""
        ...
