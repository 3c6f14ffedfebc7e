"""Version 13, 2026-11: when an agent that works on an event expects to be done, and with what."""

from outbox.migration import Migration

_PROMISES = """
ALTER TABLE deliveries ADD COLUMN eta_at_ms INTEGER;
ALTER TABLE deliveries ADD COLUMN plan_summary TEXT;
"""

STEP = Migration(13, "promises", _PROMISES)
"""The step from version 12."""
