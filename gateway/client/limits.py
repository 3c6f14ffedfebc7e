"""Bounds of the client, each with its reason."""

BACKOFF_FIRST_S = 0.1
BACKOFF_CAP_S = 10.0
"""A gateway that restarts is back in a second; one that is gone is not asked more than this often."""

REQUEST_WITHIN_S = 30.0
"""A commit takes milliseconds; a machine that swaps takes seconds."""

CONNECT_WITHIN_S = 5.0
"""The gateway is on this machine."""

CONNECTIONS_MAX = 100
"""Requests of one client at a time; more wait for a free connection."""

PING_EVERY_S = 10.0
"""Half-open sockets are found in twice this time."""

CREDIT_DEFAULT = 1
"""Turns an agent works on at a time, unless it says otherwise: most can do one."""

MESSAGE_BYTES_MAX = 1024 * 1024
"""One message of the gateway: an event and its lease, or many small frames."""

MESSAGE_CHARS_MAX = 256 * 1024
"""Frames that go out in one message; a larger one goes alone."""

FRAMES_ENOUGH = 256
"""A message of so many is not waited for longer: a gateway takes as many in one commit."""

ASK_FIRST_S = 0.05
ASK_CAP_S = 1.0
"""How often a waiting sender looks at its delivery: at once for a quick answer, seldom for a slow one."""

PIECE_BYTES = 256 * 1024
"""Of a file, read and sent at once."""

ROWS_AT_ONCE = 1_000
"""Rows of one answer, the most that a gateway gives."""

SEEN_MAX = 2_000
"""Rows that a watcher remembers to have shown, to show none twice after a reconnect: more than one answer."""
