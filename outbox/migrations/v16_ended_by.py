"""Version 16, 2026-11: which ACK has ended a delivery: a node that went back may have ended it twice."""

from outbox.migration import Migration

_ENDED_BY = """
ALTER TABLE deliveries ADD COLUMN ended_by TEXT;
"""

STEP = Migration(16, "ended by", _ENDED_BY)
"""The step from version 15."""
