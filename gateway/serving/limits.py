"""Bounds of the listeners, each with its reason."""

HEAD_BYTES_MAX = 64 * 1024
"""Request line and headers: a ticket and a proof have 8 KiB at most."""

REQUEST_WITHIN_S = 15.0
"""From its first byte (or the connection's start) to the end of its body: 320 KiB over a slow mobile line."""

GRACE_S = 5.0
"""How long shutting down waits for open sockets."""

STALLED_READER_MS = 30_000
"""A connection whose other side acknowledges nothing for so long is dead (TCP_USER_TIMEOUT)."""

BACKLOG = 128
"""Connections that may wait to be accepted: the system's usual number."""

WAITING_MAX = 256
"""Connections of strangers at a time that are no sockets: a thousand peers that come back to a seed do so
over seconds, and each is served in milliseconds."""

OPEN_FILES_MAX = 65_536
"""Files and sockets that a gateway asks the system for: shells give 256 (macOS) or 1,024 where more is
allowed."""

OPEN_FILES_TRIES = (OPEN_FILES_MAX, 10_240, 4_096)
"""macOS says that there is no limit and refuses what is above its own."""
