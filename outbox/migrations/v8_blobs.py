"""Version 8, 2026-11: blobs, and which entries and turns name one.

``blobs`` has a row for each whole blob in the home, written after its file was synced. That a blob is named
is no row of its own: it is so while an entry or a turn that names it is there.
"""

from outbox.migration import Migration

_BLOBS = """
CREATE TABLE blobs (
    sha256 TEXT PRIMARY KEY CHECK (length(sha256) = 64),
    bytes INTEGER NOT NULL,
    stored_at_ms INTEGER NOT NULL
) WITHOUT ROWID;
ALTER TABLE outbox ADD COLUMN blob TEXT;
ALTER TABLE copied_entries ADD COLUMN blob TEXT;
ALTER TABLE received ADD COLUMN blob TEXT;
CREATE INDEX outbox_blob ON outbox (blob) WHERE blob IS NOT NULL;
CREATE INDEX copied_blob ON copied_entries (blob) WHERE blob IS NOT NULL;
CREATE INDEX received_blob ON received (blob) WHERE blob IS NOT NULL;
"""

STEP = Migration(8, "blobs", _BLOBS)
"""The step from version 7."""
