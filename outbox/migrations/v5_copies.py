"""Version 5, 2026-11: verified copies of other outboxes.

A copy is one stretch of one epoch of another node's outbox, with its checkpoints, as that node wrote it. The
key of an entry is ``copy's number << 40 | seq``: reading on is one walk along a tree, as in the outbox.
"""

from outbox.migration import Migration

_COPIES = """
CREATE TABLE copies (
    source TEXT NOT NULL,
    epoch TEXT NOT NULL,
    number INTEGER NOT NULL UNIQUE,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    hash BLOB NOT NULL,
    signature BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    oldest_at_ms INTEGER NOT NULL,
    PRIMARY KEY (source, epoch)
) WITHOUT ROWID;

CREATE TABLE copied_entries (
    position INTEGER PRIMARY KEY,
    header BLOB NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE copied_checkpoints (
    position INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,
    signature BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    copied_at_ms INTEGER NOT NULL
);
"""

STEP = Migration(5, "copies of other outboxes", _COPIES)
