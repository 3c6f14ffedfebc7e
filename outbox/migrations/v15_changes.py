"""Version 15, 2026-11: what commits have changed, until it is in its tables (``outbox.changes``)."""

from outbox.migration import Migration

_CHANGES = """
CREATE TABLE changes (
    number INTEGER PRIMARY KEY,
    rows BLOB NOT NULL
);
"""

STEP = Migration(15, "changes", _CHANGES)
"""The step from version 14."""
