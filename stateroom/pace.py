"""How often a room does what."""

import msgspec

from stateroom.limits import (
    KEEPALIVE_S,
    RESYNC_S,
    SEND_QUEUE_BYTES_MAX,
    SEND_TIMEOUT_S,
    TICK_S,
    WINDOW_S,
)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How often a room does what; the defaults are those of ``stateroom.limits``, in seconds."""

    window_s: float = WINDOW_S
    tick_s: float = TICK_S
    keepalive_s: float = KEEPALIVE_S
    resync_s: float = RESYNC_S
    send_timeout_s: float = SEND_TIMEOUT_S
    send_queue_bytes: int = SEND_QUEUE_BYTES_MAX
