"""What every ledger must do: one suite for the tables and their twin in memory."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from auth.audit import AuditAction, AuditEvent, verify_audit
from auth.challenges import Nonce
from auth.invites import Invite, InviteId, InviteStatus, Reservation
from auth.keys import Jkt
from auth.ledger import Ledger
from auth.ledger_schema import LEDGER_MIGRATIONS
from auth.limits import TICKET_LIFE_S
from auth.members import Member, RevokedKey
from auth.memory_ledger import MemoryLedger
from auth.sqlite_ledger import SqliteLedger
from auth.tickets import Ticket, TicketStatus
from outbox.database import Database
from outbox.ids import NodeId


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    if request.param == "memory":
        yield MemoryLedger()
        return
    database = Database.create(tmp_path / "journal.db", wal_bytes=0)
    database.migrate("ledger", LEDGER_MIGRATIONS)
    with database.transaction():
        yield SqliteLedger(database)
    database.close()


def invite(number: int, **fields: object) -> Invite:
    made = Invite(
        id=InviteId(f"inv_{number}"),
        secret_hash=b"\x00\xff",
        rooms=("cursors", "state"),
        created_at_ms=100 - number,
        expires_at_ms=200,
    )
    return msgspec.structs.replace(made, **fields)


def ticket(number: int, issued_at_s: int = 1000) -> Ticket:
    return Ticket(
        jti=f"tkt_{number}",
        session=f"ses_{number}",
        node=NodeId("mbp"),
        jkt=Jkt("key"),
        rooms=("state",),
        issued_at_s=issued_at_s,
    )


def member(node: str, key: str, counter: int = 1) -> Member:
    return Member(
        node=NodeId(node),
        key=f"raw {key}",
        jkt=Jkt(key),
        rooms=("state",),
        invite=InviteId("inv_1"),
        counter=counter,
        admitted_at_ms=5,
    )


def revoked(name: str, node: str, key: str, *, ban: bool = False) -> RevokedKey:
    return RevokedKey(name=name, node=NodeId(node), jkt=Jkt(key), ban=ban, record=f"signed {name}")


def test_nothing_is_known_at_first(ledger: Ledger) -> None:
    assert ledger.invite(InviteId("inv_1")) is None
    assert ledger.ticket("tkt_1") is None
    assert ledger.member(NodeId("mbp")) is None
    assert ledger.member_by_key(Jkt("key")) is None
    assert (ledger.invites(), ledger.members(), ledger.audit(0, 10)) == ([], [], [])
    assert (ledger.revocations(), ledger.is_revoked(Jkt("key")), ledger.is_banned(NodeId("mbp"))) == (
        [],
        False,
        False,
    )
    assert (ledger.nonces_held(), ledger.tickets_held()) == (0, 0)


def test_invites_come_back_as_they_were(ledger: Ledger) -> None:
    held = Reservation(Jkt("key"), NodeId("mbp"), ("state",), "tkt_1")
    plain, full = invite(1), invite(2, expected_node=NodeId("mbp"), expected_key=Jkt("key"))
    for row in (plain, full):
        ledger.put_invite(row)
    assert ledger.invites() == [full, plain]
    changed = plain.reserved(held)
    ledger.put_invite(changed)
    assert ledger.invite(plain.id) == changed
    assert [row.status for row in ledger.invites()] == [InviteStatus.OPEN, InviteStatus.RESERVED]


def test_a_nonce_is_consumed_once(ledger: Ledger) -> None:
    nonce = Nonce(b"\x00" * 16, 500)
    assert not ledger.nonce_consumed(nonce)
    ledger.consume_nonce(nonce)
    assert ledger.nonce_consumed(nonce)
    assert not ledger.nonce_consumed(Nonce(b"\x01" * 16, 500))
    assert ledger.nonces_held() == 1


def test_tickets_come_back_as_they_were(ledger: Ledger) -> None:
    for row in (ticket(1), msgspec.structs.replace(ticket(2), invite=InviteId("inv_1"))):
        ledger.put_ticket(row)
        assert ledger.ticket(row.jti) == row
    used = msgspec.structs.replace(ticket(1), status=TicketStatus.USED)
    ledger.put_ticket(used)
    assert ledger.ticket("tkt_1") == used
    assert ledger.tickets_held() == 2


def test_pruning_forgets_exactly_what_has_expired(ledger: Ledger) -> None:
    ledger.consume_nonce(Nonce(b"a", 500_000))
    ledger.consume_nonce(Nonce(b"b", 500_001))
    ledger.put_ticket(ticket(1, issued_at_s=500 - TICKET_LIFE_S))
    ledger.put_ticket(ticket(2, issued_at_s=501 - TICKET_LIFE_S))
    ledger.prune(500_000)
    assert not ledger.nonce_consumed(Nonce(b"a", 500_000))
    assert ledger.nonce_consumed(Nonce(b"b", 500_001))
    assert ledger.ticket("tkt_1") is None
    assert ledger.ticket("tkt_2") is not None


def test_members_are_found_by_name_and_by_key(ledger: Ledger) -> None:
    mbp, lab = member("mbp", "k1"), member("lab", "k2")
    for row in (mbp, lab):
        ledger.put_member(row)
    assert ledger.members() == [lab, mbp]
    assert ledger.member_by_key(Jkt("k1")) == mbp
    again = member("mbp", "k1", counter=2)
    ledger.put_member(again)
    assert (ledger.member(NodeId("mbp")), len(ledger.members())) == (again, 2)


def test_revoked_keys_are_known_by_key_and_banned_names_by_name(ledger: Ledger) -> None:
    evicted, banned = revoked("k1/vps", "mbp", "k1"), revoked("k2/vps", "lab", "k2", ban=True)
    for row in (banned, evicted):
        ledger.put_revocation(row)
    assert ledger.revocations() == [evicted, banned]
    assert [ledger.is_revoked(Jkt(key)) for key in ("k1", "k2", "k3", "mbp")] == [True, True, False, False]
    assert [ledger.is_banned(NodeId(node)) for node in ("mbp", "lab", "k2")] == [False, True, False]


def test_of_several_words_about_a_key_any_one_counts(ledger: Ledger) -> None:
    """One signer's later word takes the place of its earlier one; another's stands beside it."""
    mild, harsh = revoked("k1/vps", "mbp", "k1"), revoked("k1/two", "mbp", "k1", ban=True)
    for row in (mild, mild, harsh):
        ledger.put_revocation(row)
    assert ledger.revocations() == [harsh, mild]
    assert (ledger.is_revoked(Jkt("k1")), ledger.is_banned(NodeId("mbp"))) == (True, True)
    ledger.put_revocation(msgspec.structs.replace(harsh, ban=False))
    assert (len(ledger.revocations()), ledger.is_banned(NodeId("mbp"))) == (2, False)


def test_a_revocation_outlives_its_member_and_every_pruning(ledger: Ledger) -> None:
    row = revoked("k1/vps", "mbp", "k1", ban=True)
    ledger.put_member(member("mbp", "k1"))
    ledger.put_revocation(row)
    ledger.put_member(member("mbp", "k2"))
    ledger.prune(2**53)
    assert ledger.revocations() == [row]


def test_the_audit_is_a_chain(ledger: Ledger) -> None:
    for number in range(5):
        row = ledger.append_audit(
            AuditEvent(at_ms=number, action=AuditAction.REFUSED, node="mbp", detail="exchange invalid_token")
        )
        assert row.seq == number + 1
    rows = ledger.audit(0, 10)
    assert verify_audit(rows) == 5
    assert ledger.audit(2, 2) == rows[2:4]
    assert ledger.audit(5, 10) == []
