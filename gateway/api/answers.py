"""Answers to what agents do. Core."""

import msgspec

from outbox.ids import AgentId, EventId, NodeId


class Recipient(msgspec.Struct, frozen=True):
    """Whom it was sent to; no node when nobody owns the agent (it is a dead letter already)."""

    agent: AgentId
    node: NodeId | None


class SentAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The event is on disk."""

    event_id: EventId
    thread_id: str
    to: Recipient
    duplicate: bool
    """The id had been used for the same request: nothing was sent again."""
    nodes: tuple[NodeId, ...] = ()
    """All nodes that it goes to, of an event to several agents."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Why something was not done: a stable code, what happened, what to do."""

    code: str
    message: str
    hint: str = ""
    retryable: bool = False
    """The same request may succeed later; left out where it may not."""


class RefusedAnswer(msgspec.Struct, frozen=True):
    """One of many was refused; the others stand."""

    error: Refusal


class EnqueuedAnswer(msgspec.Struct, frozen=True):
    """What became of each message of a batch, in its order."""

    results: list[SentAnswer | RefusedAnswer]


class ToldAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The signal is on disk, for every node to read."""

    event_id: EventId
    duplicate: bool
    """It had been told before: nothing was appended."""


class SettledAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The turn's end (or return) is on disk."""

    event_id: EventId
    duplicate: bool


class ExtendedAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The lease lasts so much longer from now."""

    event_id: EventId
    lease_ms: int
