"""Version 4, 2026-11: old entries go, and only through one door.

A floor is a place up to which the outbox was forgotten, with the checkpoint that vouches for it. Entries may
be deleted up to the highest floor and checkpoints below it; a floor has to be a checkpoint of the outbox, and
only moves up.
"""

from outbox.migration import Migration

_FLOORS = """
CREATE TABLE floors (
    position INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,
    signature BLOB NOT NULL
);
CREATE TRIGGER floors_are_checkpoints BEFORE INSERT ON floors
    WHEN NEW.position <= coalesce((SELECT max(position) FROM floors), 0) OR NOT EXISTS (
        SELECT 1 FROM checkpoints
        WHERE position = NEW.position AND hash = NEW.hash AND signature = NEW.signature
    )
    BEGIN SELECT RAISE(ABORT, 'a floor is a later checkpoint'); END;
CREATE TRIGGER floors_no_update BEFORE UPDATE ON floors
    BEGIN SELECT RAISE(ABORT, 'floors are append-only'); END;
CREATE TRIGGER floors_no_delete BEFORE DELETE ON floors
    WHEN OLD.position = (SELECT max(position) FROM floors)
    BEGIN SELECT RAISE(ABORT, 'the floor does not come down'); END;

DROP TRIGGER outbox_no_delete;
CREATE TRIGGER outbox_no_delete BEFORE DELETE ON outbox
    WHEN OLD.position > coalesce((SELECT max(position) FROM floors), 0)
    BEGIN SELECT RAISE(ABORT, 'the outbox is append-only above its floor'); END;
DROP TRIGGER checkpoints_no_delete;
CREATE TRIGGER checkpoints_no_delete BEFORE DELETE ON checkpoints
    WHEN OLD.position >= coalesce((SELECT max(position) FROM floors), 0)
    BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only above the floor'); END;
"""

_READERS = """
CREATE TABLE readers (
    node TEXT PRIMARY KEY,
    epoch TEXT NOT NULL,
    seq INTEGER NOT NULL,
    unseen_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX received_origin ON received (source, epoch, seq) WHERE state = 'done';
CREATE INDEX remembered_event ON remembered (event_id);
"""

STEP = Migration(4, "retention", _FLOORS + _READERS)
