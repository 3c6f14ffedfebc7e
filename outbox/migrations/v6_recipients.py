"""Version 6, 2026-11: one event may be for several nodes, and on each for several agents.

The sender's obligation is kept by event and node, so that what went to a fallback does not hide what went to
the owner before, and a broadcast has one receipt a node. The receiver keeps one turn an agent. ``node`` is
empty while nobody is there to route an event to.
"""

from outbox.migration import Migration

_DELIVERIES = """
CREATE TABLE deliveries_by_node (
    event_id BLOB NOT NULL CHECK (length(event_id) = 16),
    kind TEXT NOT NULL,
    from_agent TEXT NOT NULL,
    to_agent TEXT NOT NULL,
    node TEXT NOT NULL,
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
    error TEXT,
    tries INTEGER NOT NULL DEFAULT 1,
    accepted_epoch TEXT,
    accepted_seq INTEGER,
    redriven_as TEXT,
    dismissed_at_ms INTEGER,
    PRIMARY KEY (event_id, node)
) WITHOUT ROWID;
INSERT INTO deliveries_by_node
    SELECT event_id, kind, from_agent, to_agent, coalesce(node, ''), state, attempt, seq, thread_id,
    emitted_at_ms,
        created_at_ms, expires_at_ms, next_at_ms, accepted_at_ms, engaged_at_ms, processed_at_ms,
        replied_at_ms, dead_at_ms, outcome, error, attempt, NULL, NULL, NULL, NULL
    FROM deliveries;
DROP TABLE deliveries;
ALTER TABLE deliveries_by_node RENAME TO deliveries;
CREATE INDEX deliveries_due ON deliveries (next_at_ms) WHERE next_at_ms IS NOT NULL;
CREATE INDEX deliveries_unanswered ON deliveries (node, seq) WHERE state = 'emitted';
CREATE INDEX deliveries_state ON deliveries (state, created_at_ms);
"""

_LEDGER = """
CREATE TABLE received_by_agent (
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
    share TEXT NOT NULL DEFAULT 'sole',
    UNIQUE (event_id, source, to_agent)
);
INSERT INTO received_by_agent SELECT *, 'sole' FROM received;
DROP TABLE received;
ALTER TABLE received_by_agent RENAME TO received;
CREATE INDEX received_state ON received (state, to_agent);
CREATE INDEX received_agent ON received (to_agent);
CREATE INDEX received_origin ON received (source, epoch, seq) WHERE state = 'done';
CREATE INDEX received_by_everyone ON received (expires_at_ms) WHERE share IN ('everyone', 'late');
"""

_AGENTS = """
ALTER TABLE agents ADD COLUMN fallback TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN grace_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN groups TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN stands_in_for TEXT NOT NULL DEFAULT '';
"""

STEP = Migration(6, "recipients", _DELIVERIES + _LEDGER + _AGENTS)
