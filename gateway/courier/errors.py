"""What a caller of the courier can be told.

::

    CallerError
    ├── UnknownStream      unknown_stream    nobody has opened this stream
    ├── StreamFull         rate_limited      retryable; nothing was queued and nothing was overwritten
    ├── InvalidCredit      invalid_credit
    └── Conflict           conflict          the request and the state of the queue disagree
        └── UnknownLease   conflict          the lease ran out, was answered, or belongs to another session
"""

from outbox.errors import CallerError


class UnknownStream(CallerError):
    """Nobody has opened or filled a stream of this name."""

    code = "unknown_stream"

    def __init__(self, stream: str) -> None:
        super().__init__(f"no stream is named {stream!r}", hint="list the agents with: gateway agents")


class StreamFull(CallerError):
    """The stream holds as many items as it may; nothing was queued."""

    code = "rate_limited"
    retryable = True

    def __init__(self, stream: str, held: int) -> None:
        hint = "its consumer is slow or away; send again later, or with priority 0 or 1 if it is urgent"
        super().__init__(f"stream {stream!r} is full with {held} items", hint=hint)


class InvalidCredit(CallerError):
    """A grant is no positive integer, or lifts the unused credit above its limit."""

    code = "invalid_credit"

    def __init__(self, what: str, credit_max: int) -> None:
        super().__init__(what, hint=f"grant a whole number from 1 to {credit_max}, unused credit included")


class Conflict(CallerError):
    """The request does not fit the state of the queue."""

    code = "conflict"


class UnknownLease(Conflict):
    """No live lease of this item answers to the given lease id and session."""

    def __init__(self, stream: str, item_id: str) -> None:
        hint = "it ran out, was answered already, or belongs to another session; wait for the next delivery"
        super().__init__(f"{item_id!r} of stream {stream!r} is not leased to the caller", hint=hint)
