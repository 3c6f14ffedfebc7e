"""What is kept of a history that a node gave up, until the journals are read."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from gateway.judging.pasts import Way
from gateway.judging.witness import Account
from outbox.chain import Head
from outbox.ids import EventId, NodeId


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What one node knew of another's history."""

    accepted: frozenset[EventId]
    """Of its own events."""
    ended: frozenset[EventId]
    read: Head | None


class Bygone(msgspec.Struct, frozen=True, kw_only=True):
    """A history that was given up, by the journals that were kept of it; see ``gateway.judging.pasts``."""

    node: NodeId
    way: Way
    order: int
    since_ms: int
    base: Path
    lost: Path
    account: Account = Account()
    known: Mapping[NodeId, Known] = {}
    """What others knew of it when it was given up."""
