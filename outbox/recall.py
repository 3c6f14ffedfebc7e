"""What gateways say to each other when one of them has forgotten: payloads of kind ``signal``.

A node that begins a new epoch tells everybody how far it remembers the one before (``stream_epoch``).
Whatever else it said there is lost to it, so it asks each node whose events it takes (``recall``), and they
answer from their own obligations (``recalled``): each node is the authority on its own events, nobody has to
be believed."""

import msgspec

from outbox.ids import EventId
from outbox.kinds import Outcome
from outbox.places import EpochName, Reached

STREAM_EPOCH = "stream_epoch"
RECALL = "recall"
RECALLED = "recalled"


class StreamEpoch(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """To everybody, the first event of a new epoch of the emitter's outbox."""

    signal: str = STREAM_EPOCH
    previous: EpochName
    """The epoch that ended."""
    last_known: Reached
    """How far the emitter remembers what it said there: what it said later it has forgotten."""
    reason: str
    remembered: tuple[tuple[EpochName, Reached], ...] = ()
    """The same of the last epochs, oldest first and ``previous`` the last: a copy may have begun others."""


class Recall(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """To one node: which of your events did I end?"""

    signal: str = RECALL
    since: EpochName
    """The emitter's new epoch; the answers name it."""
    read: tuple[EpochName, Reached] | None
    """How far the emitter remembers reading the other's outbox: what stands after it is read again."""
    open: tuple[EventId, ...] = ()
    """Events before that place whose turns are open, or were ended perhaps for the second time."""
    more: bool = False
    """The list of open ones goes on in the next ``recall``."""


class Ended(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """An event whose end its sender has read."""

    ref: EventId
    outcome: Outcome
    error: str | None = None
    by: EventId | None = None
    """The ACK that said so: who has another one of it in its outbox has ended it twice."""


class Recalled(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The answer: what the asked node has read of the asker's answers to its events."""

    signal: str = RECALLED
    since: EpochName
    ended: tuple[Ended, ...] = ()
    accepted: tuple[EventId, ...] = ()
    """Accepted, and perhaps dealt with: their end was not read."""
    more: bool = False
    """The answer goes on in the next ``recalled``."""
