"""Version 7, 2026-11: which relay brought an event, or the latest answer to one; null when its writer did."""

from outbox.migration import Migration

_VIA = """
ALTER TABLE received ADD COLUMN via TEXT;
ALTER TABLE deliveries ADD COLUMN via TEXT;
"""

STEP = Migration(7, "via", _VIA)
"""The step from version 6."""
