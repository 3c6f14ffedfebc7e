"""Version 9, 2026-11: which answer the sender was given where several nodes were asked."""

from outbox.migration import Migration

_GIVEN = """
ALTER TABLE deliveries ADD COLUMN reply TEXT;
"""

STEP = Migration(9, "given reply", _GIVEN)
"""The step from version 8."""
