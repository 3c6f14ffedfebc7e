"""Bounds of the commands, each with its reason."""

ANSWER_WITHIN_S = 3.0
"""A person at a terminal is told soon that no gateway answers."""

TAIL_EVERY_S = 0.5
"""Between two looks of `outbox tail -f`: soon enough for who reads along."""

CLOCK_AHEAD_MS = 60_000
"""A last entry that is dated further ahead tells of a clock that was set back."""

AUDIT_ROWS = 1_000
"""Rows of the audit read at a time."""

DETAIL_CHARS_MAX = 500
"""Of an incident that is told to the mesh: a few lines for people."""
