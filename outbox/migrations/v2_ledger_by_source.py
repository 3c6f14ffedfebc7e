"""Version 2, 2026-11: the ledger is kept by source and event id.

A member that reads an id in another's outbox may send an event of its own under it; the two are two
engagements. The index begins with the event id, since agents name their turns by it alone.
"""

from outbox.migration import Migration

_LEDGER = """
CREATE TABLE received_by_source (
    arrival INTEGER PRIMARY KEY,
    event_id BLOB NOT NULL CHECK (length(event_id) = 16),
    source TEXT NOT NULL,
    epoch TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    to_agent TEXT NOT NULL,
    body BLOB NOT NULL,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    accepted_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    delivery_count INTEGER NOT NULL,
    lease_id TEXT,
    session TEXT,
    engaged_at_ms INTEGER,
    done_at_ms INTEGER,
    outcome TEXT,
    error TEXT,
    UNIQUE (event_id, source)
);
INSERT INTO received_by_source SELECT * FROM received;
DROP TABLE received;
ALTER TABLE received_by_source RENAME TO received;
CREATE INDEX received_state ON received (state, to_agent);
CREATE INDEX received_agent ON received (to_agent);
"""

STEP = Migration(2, "the ledger by source", _LEDGER)
