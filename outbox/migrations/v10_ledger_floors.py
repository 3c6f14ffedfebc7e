"""Version 10, 2026-11: up to where finished turns of another outbox were forgotten."""

from outbox.migration import Migration

_LEDGER_FLOORS = """
CREATE TABLE ledger_floors (
    source TEXT PRIMARY KEY,
    epoch TEXT NOT NULL,
    seq INTEGER NOT NULL
) WITHOUT ROWID;
"""

STEP = Migration(10, "ledger floors", _LEDGER_FLOORS)
"""The step from version 9."""
