"""Version 1, 2026-11: the journal."""

from outbox.migration import Migration

_IDENTITY = """
CREATE TABLE identity (mesh TEXT NOT NULL, node TEXT NOT NULL, epoch TEXT NOT NULL);
"""

_OUTBOX = """
CREATE TABLE outbox (
    position INTEGER PRIMARY KEY,
    event_id BLOB NOT NULL CHECK (length(event_id) = 16),
    attempt INTEGER NOT NULL,
    kind TEXT NOT NULL,
    corr_id BLOB,
    header BLOB NOT NULL,
    body BLOB NOT NULL
);
CREATE UNIQUE INDEX outbox_event ON outbox (event_id, attempt, position >> 40);
CREATE INDEX outbox_corr ON outbox (corr_id) WHERE corr_id IS NOT NULL;

CREATE TABLE checkpoints (
    position INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,
    signature BLOB NOT NULL,
    bytes INTEGER NOT NULL
);

CREATE TRIGGER outbox_no_update BEFORE UPDATE ON outbox
    BEGIN SELECT RAISE(ABORT, 'the outbox is append-only'); END;
CREATE TRIGGER outbox_no_delete BEFORE DELETE ON outbox
    BEGIN SELECT RAISE(ABORT, 'the outbox is append-only'); END;
CREATE TRIGGER checkpoints_no_update BEFORE UPDATE ON checkpoints
    BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only'); END;
CREATE TRIGGER checkpoints_no_delete BEFORE DELETE ON checkpoints
    BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only'); END;
"""

_SENDER = """
CREATE TABLE deliveries (
    event_id BLOB PRIMARY KEY CHECK (length(event_id) = 16),
    kind TEXT NOT NULL,
    from_agent TEXT NOT NULL,
    to_agent TEXT NOT NULL,
    node TEXT,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    emitted_at_ms INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    next_at_ms INTEGER,
    accepted_at_ms INTEGER,
    engaged_at_ms INTEGER,
    processed_at_ms INTEGER,
    replied_at_ms INTEGER,
    dead_at_ms INTEGER,
    outcome TEXT,
    error TEXT
) WITHOUT ROWID;
CREATE INDEX deliveries_due ON deliveries (next_at_ms) WHERE next_at_ms IS NOT NULL;
CREATE INDEX deliveries_unanswered ON deliveries (node, seq) WHERE state = 'emitted';
CREATE INDEX deliveries_state ON deliveries (state, created_at_ms);

CREATE TABLE remembered (
    agent TEXT NOT NULL,
    key TEXT NOT NULL,
    request_hash BLOB NOT NULL,
    event_id BLOB NOT NULL,
    PRIMARY KEY (agent, key)
) WITHOUT ROWID;
"""

_RECEIVER = """
CREATE TABLE cursors (
    source TEXT PRIMARY KEY,
    epoch TEXT NOT NULL,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE received (
    arrival INTEGER PRIMARY KEY,
    event_id BLOB NOT NULL UNIQUE CHECK (length(event_id) = 16),
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
    error TEXT
);
CREATE INDEX received_state ON received (state, to_agent);
CREATE INDEX received_agent ON received (to_agent);

CREATE TABLE quarantined (
    arrival INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    epoch TEXT NOT NULL,
    seq INTEGER NOT NULL,
    reason TEXT NOT NULL,
    header BLOB NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (source, epoch, seq)
);
"""

_NODE = """
CREATE TABLE incidents (
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    opened_at_ms INTEGER NOT NULL,
    closed_at_ms INTEGER,
    detail TEXT NOT NULL,
    PRIMARY KEY (kind, subject)
) WITHOUT ROWID;

CREATE TABLE agents (
    name TEXT PRIMARY KEY,
    owner_epoch INTEGER NOT NULL,
    token_hash BLOB NOT NULL,
    created_at_ms INTEGER NOT NULL
) WITHOUT ROWID;
"""

STEP = Migration(1, "the journal", _IDENTITY + _OUTBOX + _SENDER + _RECEIVER + _NODE)
