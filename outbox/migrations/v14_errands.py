"""Version 14, 2026-11: what is too much for one tick, until all of it is done. Lapses were the first."""

from outbox.migration import Migration

_ERRANDS = """
CREATE TABLE errands (
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (kind, subject)
) WITHOUT ROWID;
INSERT INTO errands SELECT 'lapse', node || '/' || epoch, remembered FROM lapses;
DROP TABLE lapses;
"""

STEP = Migration(14, "errands", _ERRANDS)
"""The step from version 13."""
