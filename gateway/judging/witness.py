"""What the agents saw and were told: the ground truth that the journals are held against.

Everything is numbered in the order in which it was seen by this one process, so that "before" and "after"
need no clock.
"""

import msgspec
from msgspec.structs import replace

from outbox.ids import AgentId, EventId, NodeId


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """An agent was handed a turn."""

    order: int
    at_ms: int
    agent: AgentId
    node: NodeId
    event_id: EventId
    lease_id: str
    delivery_count: int
    resumed: bool


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway told an agent that what it sent is in the outbox."""

    key: str
    """What it was: the agent's own name for the message."""
    node: NodeId
    agent: AgentId
    event_id: EventId
    reply: bool
    repeated: bool
    """The answer to the first try was lost; this one says that it had worked."""
    order: int = 0
    """Set by the witness."""


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway told an agent that its turn is over."""

    order: int
    agent: AgentId
    event_id: EventId


class Return(msgspec.Struct, frozen=True, kw_only=True):
    """An agent set out to give its turn back; whether the gateway heard of it is another matter."""

    agent: AgentId
    event_id: EventId
    lease_id: str


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway refused to send."""

    key: str
    code: str
    what: str
    hint: str


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, when the play is over."""

    sightings: tuple[Sighting, ...] = ()
    promises: tuple[Promise, ...] = ()
    settlements: tuple[Settlement, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    returns: tuple[Return, ...] = ()

    def promised(self, key: str) -> EventId | None:
        """The event that a key became."""
        return next((promise.event_id for promise in self.promises if promise.key == key), None)


class Witness:
    """Writes down what happens, in order. One for all agents of a run."""

    def __init__(self) -> None:
        self._order = 0
        self._sightings: list[Sighting] = []
        self._promises: dict[str, Promise] = {}
        self._settlements: list[Settlement] = []
        self._refusals: list[Refusal] = []
        self._returns: list[Return] = []

    def saw(
        self, *, at_ms: int, agent: AgentId, node: NodeId, event_id: EventId, lease_id: str,
        delivery_count: int, resumed: bool,
    ) -> None:  # fmt: skip
        """A turn was handed to an agent."""
        self._sightings.append(
            Sighting(
                order=self._next(),
                at_ms=at_ms,
                agent=agent,
                node=node,
                event_id=event_id,
                lease_id=lease_id,
                delivery_count=delivery_count,
                resumed=resumed,
            )
        )

    def heard(self, promise: Promise) -> None:
        """A send was answered; a second answer under one key must name the same event, or both are kept."""
        promise = replace(promise, order=self._next())
        known = self._promises.get(promise.key)
        if known is None or known.event_id == promise.event_id:
            self._promises[promise.key] = promise
        else:
            self._promises[f"{promise.key} again"] = promise

    def settled(self, agent: AgentId, event_id: EventId) -> None:
        """The end of a turn was answered."""
        self._settlements.append(Settlement(order=self._next(), agent=agent, event_id=event_id))

    def gives_back(self, agent: AgentId, event_id: EventId, lease_id: str) -> None:
        """A turn is about to be given back."""
        self._returns.append(Return(agent=agent, event_id=event_id, lease_id=lease_id))

    def refused(self, refusal: Refusal) -> None:
        """A send was refused."""
        self._refusals.append(refusal)

    def mark(self) -> int:
        """The moment, between what was seen before and what will be."""
        return self._next()

    def turns_of(self, agent: AgentId) -> int:
        """How many turns an agent was handed so far."""
        return sum(sighting.agent == agent for sighting in self._sightings)

    @property
    def promises(self) -> int:
        """How many sends were answered so far."""
        return len(self._promises)

    def account(self) -> Account:
        """What was written down so far."""
        return Account(
            sightings=tuple(self._sightings),
            promises=tuple(self._promises.values()),
            settlements=tuple(self._settlements),
            refusals=tuple(self._refusals),
            returns=tuple(self._returns),
        )

    def _next(self) -> int:
        self._order += 1
        return self._order
