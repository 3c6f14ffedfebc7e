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


class SettledAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The turn's end (or return) is on disk."""

    event_id: EventId
    duplicate: bool


class ExtendedAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The lease lasts so much longer from now."""

    event_id: EventId
    lease_ms: int
