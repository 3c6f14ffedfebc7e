"""Version 3, 2026-11: an outbox has several epochs, and cursors keep the signature that vouches for them.

``epochs`` has a row for each epoch that is not shown to its end: for those that ended, and for the current
one while its new tail is held back. Positions hold the ordinal already: the outbox itself does not change.
"""

from outbox.migration import Migration

_EPOCHS = """
CREATE TABLE epochs (
    ordinal INTEGER PRIMARY KEY,
    epoch TEXT NOT NULL,
    shown INTEGER NOT NULL
);
ALTER TABLE cursors ADD COLUMN signature BLOB NOT NULL DEFAULT x'';
CREATE TABLE doubts (
    source TEXT PRIMARY KEY,
    epoch TEXT NOT NULL
) WITHOUT ROWID;
"""

STEP = Migration(3, "epochs", _EPOCHS)
