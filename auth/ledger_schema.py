"""The ledger's tables. A step is never edited once released, only followed by another."""

from outbox.migration import Migration

LEDGER_MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        1,
        "invites, nonces, tickets, members, audit",
        """
CREATE TABLE invites (
    id TEXT PRIMARY KEY,
    secret_hash BLOB NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'reserved', 'used', 'contested', 'revoked')),
    rooms TEXT NOT NULL,
    expected_node TEXT,
    expected_key TEXT,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    reservation TEXT
) WITHOUT ROWID;

CREATE TABLE nonces (
    id BLOB PRIMARY KEY,
    expires_at_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX nonces_by_expiry ON nonces (expires_at_ms);

CREATE TABLE tickets (
    jti TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    node TEXT NOT NULL,
    jkt TEXT NOT NULL,
    rooms TEXT NOT NULL,
    invite TEXT,
    issued_at_s INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('issued', 'used', 'void'))
) WITHOUT ROWID;
CREATE INDEX tickets_by_time ON tickets (issued_at_s);

CREATE TABLE members (
    node TEXT PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    jkt TEXT NOT NULL UNIQUE,
    rooms TEXT NOT NULL,
    invite TEXT NOT NULL,
    counter INTEGER NOT NULL,
    admitted_at_ms INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    action TEXT NOT NULL,
    node TEXT NOT NULL,
    jkt TEXT NOT NULL,
    client TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    hash BLOB NOT NULL
);
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_is_never_cut BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
""",
    ),
    Migration(
        2,
        "revoked keys",
        """
CREATE TABLE revocations (
    name TEXT PRIMARY KEY,
    node TEXT NOT NULL,
    jkt TEXT NOT NULL,
    ban INTEGER NOT NULL,
    record TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX revocations_by_key ON revocations (jkt);
CREATE INDEX revocations_by_node ON revocations (node);
""",
    ),
)
