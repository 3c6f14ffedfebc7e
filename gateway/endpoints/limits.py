"""Bounds of the local listener, each with its reason."""

ERROR_CHARS_MAX = 1_000
"""Why a turn failed: a line for a person, carried in an ACK that every reader of the outbox gets."""

SESSION_CHARS_MAX = 64
"""An agent's name for one run of it; stored with each lease."""

FRAME_CHARS_MAX = 320 * 1024
"""One text frame of a client: a payload and its envelope, as much as an HTTP body may have."""

SOCKET_CREDIT_MAX = 256
"""Turns that one socket may be owed, granted and not yet sent: 70 MB of the largest events, often some KB."""

SOCKET_REQUESTS_MAX = 2_048
"""Requests of one socket that wait for their answer; beyond it the socket is not read. Two ticks' worth."""

SOCKET_REQUEST_CHARS_MAX = 4 * 1024 * 1024
"""The same in characters of their frames: a dozen of the largest, or two thousand of usual size."""

SOCKET_MESSAGE_CHARS_MAX = 1024 * 1024
"""One message of a client that sends many frames in one: three of the largest, or some thousand."""

MESSAGE_CHARS_MAX = 128 * 1024
"""Frames that go out in one message of a socket that takes many; a larger frame goes alone."""

ENQUEUE_BATCH_MAX = 1_000
"""Messages of one ``POST /v1/enqueue``: a tick's worth; its bytes are bounded as any body's."""

SEND_WITHIN_S = 15.0
"""A reader that takes nothing for so long is let go; its session keeps its leases."""

ROWS_DEFAULT = 100
ROWS_MAX = 1_000
"""Rows of one answer: some 100 KB of JSON, made without holding the loop for long."""

ROWS_BYTES_MAX = 4 * 1024 * 1024
"""Payloads in one answer; the rows after it are asked for with ``after``."""

COPY_CLOCKS_APART_MS = 24 * 3_600_000
"""A trace that is looked for in copies begins with what came so long before the event by its own clock."""

COPIED_ABOUT_MAX = 1_000
"""Entries about one event that are taken from each copy: attempts, and ACKs that were repeated."""

INVITE_TTL_S_DEFAULT = 900
INVITE_TTL_S_MAX = 7 * 24 * 3600
"""A quarter of an hour to copy a code; at most a week for a machine that is set up later."""

RETRY_AFTER_S = 1
"""What a caller is told who came too early or met a full queue."""

GRACE_MS_DEFAULT = 5 * 60_000
"""How long an owner may be away before its fallback answers: longer than a restart or a train in a tunnel."""

DEAD_ROWS = 1_000
"""Dead letters read at a time where an agent sees only its own."""

REASON_CHARS_MAX = 300
"""Why a node was put out: a line that every node of the mesh keeps."""
