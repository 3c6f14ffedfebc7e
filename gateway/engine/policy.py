"""The numbers an operator may set for one engine."""

from typing import Literal

import msgspec

from gateway.engine.circles import UNSAID
from gateway.engine.limits import BLOB_GRACE_MS, ERRAND_ROWS_MAX
from gateway.engine.pace import PaceLimits
from outbox.ids import NodeId
from outbox.limits import EXPIRES_IN_MS_DEFAULT, KEPT_BYTES, KEPT_ENTRIES, KEPT_MS, READER_LEASE_MS
from outbox.retry import RetryPolicy


class MirrorPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Which outboxes of others are copied here, to be served on, and how much of them is kept."""

    nodes: Literal["all", "none"] | tuple[NodeId, ...] = "none"
    bytes_max: int = 4 * 1024**3
    """Of all copies together."""
    age_ms: int = 30 * 24 * 3_600_000
    """A batch that was copied so long ago is let go of."""

    def holds(self, node: NodeId) -> bool:
        """Whether a node's outbox is copied."""
        return self.nodes == "all" or (self.nodes != "none" and node in self.nodes)


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """What the own outbox keeps; whatever is above any of the bounds may be forgotten."""

    age_ms: int = KEPT_MS
    entries_max: int = KEPT_ENTRIES
    bytes_max: int = KEPT_BYTES
    reader_lease_ms: int = READER_LEASE_MS
    """A reader that was not seen for so long holds nothing any more."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Times are milliseconds."""

    retry: RetryPolicy = RetryPolicy()
    retention: Retention = Retention()
    expires_in_ms: int = EXPIRES_IN_MS_DEFAULT
    sla_accept_ms: int = 10 * 60_000
    """An event that nobody accepted for so long is an incident, whatever the reason."""
    sla_process_ms: int = 15 * 60_000
    """An accepted event that is not processed for so long is an incident; one status request is sent."""
    silence_ms: int = 24 * 3_600_000
    """So long after its expiry an accepted event without a word is a dead letter."""
    answers: PaceLimits = PaceLimits()
    """How fast two agents, or all in one thread, may answer each other with messages."""
    unsaid: PaceLimits = UNSAID
    """How fast an agent that is handed messages may send others that name no cause."""
    hold_ms: int = 10 * 60_000
    """So long an event waits for the state room to name its sender's owner."""
    mirror: MirrorPolicy = MirrorPolicy()
    blob_grace_ms: int = BLOB_GRACE_MS
    """So long a blob that nobody names stays after it came, or was last asked to be kept."""
    errand_rows: int = ERRAND_ROWS_MAX
    """Rows that one tick looks at for what is too much for one."""
