"""Version 11, 2026-11: nodes that have forgotten what they accepted, until all of it is due again."""

from outbox.migration import Migration

_LAPSES = """
CREATE TABLE lapses (
    node TEXT NOT NULL,
    epoch TEXT NOT NULL,
    remembered TEXT NOT NULL,
    PRIMARY KEY (node, epoch)
) WITHOUT ROWID;
"""

STEP = Migration(11, "lapses", _LAPSES)
"""The step from version 10."""
