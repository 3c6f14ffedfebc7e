"""When something is tried again, and when a delivery has been tried often enough.

Exponential backoff with full jitter: the wait is drawn evenly from nothing to the ceiling of the attempt, so
that senders that failed together do not come back together.

Source: backoff rule of ``docs/PROTOCOL.md``.
"""

import msgspec
from msgspec.structs import replace

from outbox.limits import (
    ACK_TIMEOUT_MS,
    ATTEMPTS_MAX,
    BACKOFF_CAP_MS,
    BACKOFF_FIRST_MS,
    DOUBLINGS_MAX,
    FULL_ATTEMPTS_MAX,
    FULL_CAP_MS,
)


def full_jitter(failures: int, fraction: float, *, first: float, cap: float, factor: int = 2) -> float:
    """The wait after so many failures in a row (1, 2 …), in the unit of ``first`` and ``cap``.

    It is ``fraction`` (random, at least 0 and below 1) of a ceiling that grows by ``factor`` up to the cap.
    """
    return fraction * float(min(cap, first * factor ** min(failures - 1, DOUBLINGS_MAX)))


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how fast one node tries. Raises ValueError when the numbers make no policy."""

    first_ms: int = BACKOFF_FIRST_MS
    """Ceiling of the wait after attempt 1."""
    factor: int = 2
    cap_ms: int = BACKOFF_CAP_MS
    attempts_max: int = ATTEMPTS_MAX
    ack_timeout_ms: int = ACK_TIMEOUT_MS
    """How long an attempt may stay without ``ack:accepted`` before its loss is looked into."""

    def __post_init__(self) -> None:
        if min(self.first_ms, self.factor, self.attempts_max, self.ack_timeout_ms) < 1:
            raise ValueError("every number of a retry policy is at least 1")
        if self.cap_ms < self.first_ms:
            raise ValueError("cap_ms is below first_ms")

    def ceiling_ms(self, attempt: int) -> int:
        """The longest wait after attempt ``attempt`` (1, 2, 3 …)."""
        return int(full_jitter(attempt, 1, first=self.first_ms, cap=self.cap_ms, factor=self.factor))

    def backoff_ms(self, attempt: int, fraction: float) -> int:
        """The wait after attempt ``attempt``, for a random ``fraction`` of at least 0 and below 1."""
        return int(fraction * self.ceiling_ms(attempt))

    def exhausted(self, attempt: int) -> bool:
        """Whether attempt ``attempt`` was the last one allowed."""
        return attempt >= self.attempts_max

    def patient(self) -> "RetryPolicy":
        """The policy towards a node that answers and has no room now."""
        return replace(
            self,
            cap_ms=max(self.cap_ms, FULL_CAP_MS),
            attempts_max=max(self.attempts_max, FULL_ATTEMPTS_MAX),
        )
