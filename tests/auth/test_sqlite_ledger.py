import stat
from pathlib import Path

import pytest

from auth.audit import AuditAction, AuditEvent
from auth.challenges import Nonce
from auth.invites import InviteId
from auth.keys import Jkt
from auth.ledger_schema import LEDGER_MIGRATIONS
from auth.members import Member, RevokedKey
from auth.sqlite_ledger import SqliteLedger
from outbox.database import Database
from outbox.errors import StorageFailed
from outbox.ids import NodeId


@pytest.fixture
def database(tmp_path: Path) -> Database:
    opened = Database.create(tmp_path / "journal.db", wal_bytes=0)
    opened.migrate("ledger", LEDGER_MIGRATIONS)
    return opened


def member(node: str, jkt: str) -> Member:
    return Member(
        node=NodeId(node),
        key=jkt,
        jkt=Jkt(jkt),
        rooms=("state",),
        invite=InviteId("inv_1"),
        counter=1,
        admitted_at_ms=0,
    )


def test_a_rollback_forgets_everything(database: Database) -> None:
    ledger = SqliteLedger(database)
    database.begin()
    ledger.consume_nonce(Nonce(b"n", 5))
    ledger.append_audit(AuditEvent(at_ms=1, action=AuditAction.REFUSED))
    database.rollback()
    assert ledger.nonces_held() == 0
    assert ledger.audit(0, 10) == []
    database.close()


def test_a_ledger_of_the_first_schema_learns_to_keep_revocations(tmp_path: Path) -> None:
    old = Database.create(tmp_path / "old.db", wal_bytes=0)
    old.migrate("ledger", LEDGER_MIGRATIONS[:1])
    with old.transaction():
        SqliteLedger(old).put_member(member("mbp", "k1"))
    old.migrate("ledger", LEDGER_MIGRATIONS)
    ledger = SqliteLedger(old)
    with old.transaction():
        ledger.put_revocation(
            RevokedKey(name="k1/vps", node=NodeId("mbp"), jkt=Jkt("k1"), ban=False, record="signed")
        )
    assert (ledger.members(), ledger.is_revoked(Jkt("k1"))) == ([member("mbp", "k1")], True)
    old.close()


def test_writes_need_an_open_transaction(database: Database) -> None:
    with pytest.raises(AssertionError):
        SqliteLedger(database).consume_nonce(Nonce(b"n", 5))
    database.close()


def test_what_was_committed_is_there_after_a_restart(database: Database) -> None:
    revoked = RevokedKey(name="k2/vps", node=NodeId("lab"), jkt=Jkt("k2"), ban=True, record="signed")
    with database.transaction():
        SqliteLedger(database).put_member(member("mbp", "k1"))
        SqliteLedger(database).put_revocation(revoked)
    database.close()
    again = Database.open(database.path, wal_bytes=0)
    again.migrate("ledger", LEDGER_MIGRATIONS)
    assert SqliteLedger(again).member(NodeId("mbp")) == member("mbp", "k1")
    assert SqliteLedger(again).revocations() == [revoked]
    again.close()


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM audit",
        "UPDATE audit SET detail = 'nothing happened'",
        "REPLACE INTO audit SELECT * FROM audit",
    ],
)
def test_the_audit_cannot_be_changed(sql: str, database: Database) -> None:
    with database.transaction():
        SqliteLedger(database).append_audit(AuditEvent(at_ms=1, action=AuditAction.REFUSED))
    with pytest.raises(StorageFailed):
        database.execute(sql)
    assert len(SqliteLedger(database).audit(0, 10)) == 1
    database.close()


def test_one_key_cannot_be_two_nodes(database: Database) -> None:
    ledger = SqliteLedger(database)
    database.begin()
    ledger.put_member(member("mbp", "k1"))
    with pytest.raises(StorageFailed):
        ledger.put_member(member("lab", "k1"))
    assert ledger.members() == [member("mbp", "k1")]
    database.close()


def test_a_damaged_row_is_a_failure_not_a_member(database: Database) -> None:
    with database.transaction():
        SqliteLedger(database).put_member(member("mbp", "k1"))
        database.execute("UPDATE members SET rooms = '['")
    with pytest.raises(StorageFailed):
        SqliteLedger(database).member(NodeId("mbp"))
    database.close()


def test_no_other_user_can_read_it(database: Database) -> None:
    with database.transaction():
        SqliteLedger(database).put_member(member("mbp", "k1"))
    for path in database.path.parent.glob("journal.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    database.close()
