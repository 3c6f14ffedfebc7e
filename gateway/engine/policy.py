"""The numbers an operator may set for one engine."""

import msgspec

from outbox.limits import EXPIRES_IN_MS_DEFAULT
from outbox.retry import RetryPolicy


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Times are milliseconds."""

    retry: RetryPolicy = RetryPolicy()
    expires_in_ms: int = EXPIRES_IN_MS_DEFAULT
    sla_accept_ms: int = 10 * 60_000
    """An event that nobody accepted for so long is an incident, whatever the reason."""
    sla_process_ms: int = 15 * 60_000
    """An accepted event that is not processed for so long is an incident; one status request is sent."""
    silence_ms: int = 24 * 3_600_000
    """So long after its expiry an accepted event without a word is a dead letter."""
    hold_ms: int = 10 * 60_000
    """So long an event waits for the state room to name its sender's owner."""
