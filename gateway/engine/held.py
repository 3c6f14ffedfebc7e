"""Accepted events that wait for the state room to say who owns the agent that sent them."""

from gateway.engine.limits import HELD_MAX
from outbox.ids import AgentId, EventId


class Held:
    """At most ``HELD_MAX`` events, by the agent that is said to have sent them, oldest first."""

    def __init__(self) -> None:
        self._sender_of: dict[EventId, AgentId] = {}
        self._by_sender: dict[AgentId, dict[EventId, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._sender_of)

    @property
    def full(self) -> bool:
        """Whether the next one is refused."""
        return len(self._sender_of) >= HELD_MAX

    def add(self, event: EventId, sender: AgentId) -> None:
        """Let an event wait."""
        self._sender_of[event] = sender
        self._by_sender.setdefault(sender, {})[event] = None

    def drop(self, event: EventId) -> None:
        """It waits no longer; one that does not wait is fine."""
        sender = self._sender_of.pop(event, None)
        if sender is None:
            return
        waiting = self._by_sender[sender]
        del waiting[event]
        if not waiting:
            del self._by_sender[sender]

    def events(self) -> list[EventId]:
        """All that wait, those of one sender together."""
        return [event for waiting in self._by_sender.values() for event in waiting]
