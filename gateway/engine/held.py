"""Accepted events that wait for the state room to say who owns the agent that sent them."""

from collections.abc import Callable
from itertools import islice

from gateway.engine.limits import HELD_MAX
from gateway.engine.turnkey import TurnKey
from outbox.ids import AgentId


class Held:
    """At most ``HELD_MAX`` events, by the agent that is said to have sent them, oldest first."""

    def __init__(self) -> None:
        self._sender_of: dict[TurnKey, AgentId] = {}
        self._by_sender: dict[AgentId, dict[TurnKey, None]] = {}
        self._due: dict[TurnKey, None] = {}
        """Those to be judged."""

    def __bool__(self) -> bool:
        return bool(self._sender_of)

    @property
    def full(self) -> bool:
        """Whether the next one is refused."""
        return len(self._sender_of) >= HELD_MAX

    def add(self, turn: TurnKey, sender: AgentId) -> None:
        """Let a turn wait."""
        self._sender_of[turn] = sender
        self._by_sender.setdefault(sender, {})[turn] = None

    def drop(self, turn: TurnKey) -> bool:
        """It waits no longer; whether it did."""
        sender = self._sender_of.pop(turn, None)
        if sender is None:
            return False
        self._due.pop(turn, None)
        waiting = self._by_sender[sender]
        del waiting[turn]
        if not waiting:
            del self._by_sender[sender]
        return True

    def look_at(self, changed: Callable[[AgentId], bool]) -> bool:
        """What agents of whom the room says something new have sent is to be judged; whether anything is."""
        for sender, waiting in self._by_sender.items():
            if changed(sender):
                self._due.update(waiting)
        return bool(self._due)

    def is_due(self, turn: TurnKey) -> bool:
        """Whether a turn is to be judged."""
        return turn in self._due

    def due(self, most: int) -> list[TurnKey]:
        """The next to be judged, at most so many; none of them is asked for twice."""
        turns = list(islice(self._due, most))
        for turn in turns:
            del self._due[turn]
        return turns

    def turns(self) -> list[TurnKey]:
        """All that wait, those of one sender together."""
        return [turn for waiting in self._by_sender.values() for turn in waiting]
