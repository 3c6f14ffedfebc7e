"""The sockets that wait for turns: subscriber by subscriber, a mailbox that its credit bounds."""

import asyncio

from gateway.endpoints.errors import SubscriptionEnded
from gateway.engine.effects import Handed
from outbox.ids import AgentId

REPLACED = 4409
"""WebSocket close code: the session has subscribed anew elsewhere; do not come back."""
REMOVED = 4410
"""WebSocket close code: the agent does not live here any more."""
REVOKED = 4401
"""WebSocket close code: the key of this node was revoked; do not come back."""
RESET = 1012
"""Close code "service restart" (IANA registry of RFC 6455): subscribe again."""


class Mailbox:
    """Turns on their way to one socket. Holds no more than the credit that the socket granted."""

    def __init__(self, agent: AgentId, session: str) -> None:
        self.key = (agent, session)
        self.owed = 0
        """Turns granted and not yet taken."""
        self._turns: list[Handed] = []
        self._ended: SubscriptionEnded | None = None
        self._changed = asyncio.Event()

    def put(self, turn: Handed) -> None:
        """Add a turn; a resumed one costs no credit."""
        if turn.resumed:
            self.owed += 1
        self._turns.append(turn)
        self._changed.set()

    def end(self, error: SubscriptionEnded) -> None:
        """No turn comes any more."""
        self._ended = self._ended or error
        self._changed.set()

    def wake(self) -> None:
        """Something else is to be sent on the socket."""
        self._changed.set()

    async def changed(self) -> None:
        """Wait until there is something to send. Raises SubscriptionEnded when the subscription is over."""
        await self._changed.wait()
        self._changed.clear()
        if self._ended is not None:
            raise self._ended

    def take(self) -> list[Handed]:
        """All turns that came."""
        turns, self._turns = self._turns, []
        self.owed -= len(turns)
        return turns


class TurnSockets:
    """All mailboxes of a gateway. The engine's effects come in here."""

    def __init__(self) -> None:
        self._boxes: dict[str, Mailbox] = {}
        self._sessions: dict[tuple[AgentId, str], str] = {}

    def open(self, subscriber: str, agent: AgentId, session: str) -> Mailbox:
        """A mailbox for a new subscriber; an older socket of the same session is ended."""
        box = Mailbox(agent, session)
        before = self._boxes.get(self._sessions.get(box.key, ""))
        if before is not None:
            before.end(SubscriptionEnded(REPLACED, "the session subscribed anew elsewhere"))
        self._boxes[subscriber] = box
        self._sessions[box.key] = subscriber
        return box

    def close(self, subscriber: str) -> None:
        """Forget a subscriber."""
        box = self._boxes.pop(subscriber, None)
        if box is not None and self._sessions.get(box.key) == subscriber:
            del self._sessions[box.key]

    def handed(self, turn: Handed) -> None:
        """Deliver a turn. If its socket has gone, its lease waits for the session, or runs out."""
        box = self._boxes.get(turn.subscriber)
        if box is not None:
            box.put(turn)

    def removed(self, agent: AgentId) -> None:
        """The agent was taken away: its sockets would wait for ever, also for turns after its return."""
        for box in self._boxes.values():
            if box.key[0] == agent:
                box.end(SubscriptionEnded(REMOVED, f"{agent} does not live here any more"))

    def revoked(self, why: str) -> None:
        """This node speaks for nobody any more."""
        for box in self._boxes.values():
            box.end(SubscriptionEnded(REVOKED, f"node_revoked: {why}"))

    def reset(self) -> None:
        """The engine was built anew and knows no subscriber: every socket has to subscribe again."""
        for box in self._boxes.values():
            box.end(SubscriptionEnded(RESET, "the gateway restarted its engine; subscribe again"))
