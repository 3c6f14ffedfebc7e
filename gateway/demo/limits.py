"""Every bound of the demo, with its reason. Times are milliseconds unless the name says otherwise."""

DURATION_S_DEFAULT = 25
"""Long enough to watch, and with Spark's start below two minutes in all."""

DURATION_S_MIN = 2
"""A gateway that is killed has to come back within the conversation."""

DURATION_S_MAX = 3_600
"""An hour: afterwards it is no demo."""

FILE_BYTES_MAX = 64 * 1024 * 1024
LINES_MAX = 10_000
"""Of a conversation: read into memory at once, and played by one process."""

TEXT_BYTES_MAX = 200 * 1024
"""Of one text: as JSON with escapes it stays below the payload's limit."""

SLA_ACCEPT_MS = 5_000
SLA_PROCESS_MS = 8_000
"""Promises short enough for the planted incidents to show; a crash of some seconds does not break them."""

HELD_MS_MAX = 2_000
"""A turn whose scripted reply is further away is acknowledged now and answered then."""

BURST = 120
"""Messages in one go: many commits' worth, and far more than one socket's credit."""

BURST_WORKERS = 12
BURST_REPLY_EVERY = 10
"""One in ten of the burst is answered with a reply, the others with an ACK."""

CREDIT = 32
"""Unanswered turns of one agent."""

KILL_WITHIN_S = 3.0
"""So long the crash waits for the burst to reach the other side, then it comes anyway."""

QUIET_WITHIN_S = 45.0
"""After the last line: retries, the restarted gateway's backlog, and the SLA of the message that waits."""

FAULTS_SHOWN = 20
INCIDENTS_SHOWN = 12
"""A screenful: the first few tell the story."""

AT_MS_MAX = 366 * 24 * 3_600_000
"""When a line may be said: within a year of the beginning."""
