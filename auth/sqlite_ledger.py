"""The ledger as tables, inside whatever transaction the owner of the database has open."""

from typing import Any, TypeVar

import msgspec

from auth.audit import AuditEvent, AuditRow, next_row
from auth.challenges import Nonce
from auth.invites import Invite, InviteId
from auth.keys import Jkt
from auth.limits import TICKET_LIFE_S
from auth.members import Member, RevokedKey
from auth.tickets import Ticket
from outbox.database import Database
from outbox.errors import StorageFailed
from outbox.ids import NodeId

_Record = TypeVar("_Record", bound=msgspec.Struct)

_JSON = frozenset({"rooms", "reservation"})
"""Columns that hold JSON text."""

_FLAGS = frozenset({"ban"})
"""Columns that hold 0 or 1."""

_AUDIT = ", ".join(AuditEvent.__struct_fields__)


class SqliteLedger:
    """See ``auth.ledger.Ledger``; the tables are ``auth.ledger_schema.LEDGER_MIGRATIONS``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def invite(self, name: InviteId) -> Invite | None:
        """One invite. Raises StorageFailed, as every method here."""
        return self._one("invites", Invite, "id = ?", name)

    def put_invite(self, invite: Invite) -> None:
        """Insert or replace it."""
        self._put("invites", invite)

    def invites(self) -> list[Invite]:
        """All of them, oldest first."""
        return self._all("invites", Invite, "created_at_ms, id")

    def nonce_consumed(self, nonce: Nonce) -> bool:
        """Whether it was used before."""
        return self._one("nonces", Nonce, "id = ?", nonce.id) is not None

    def consume_nonce(self, nonce: Nonce) -> None:
        """Remember it until it expires."""
        self._put("nonces", nonce)

    def nonces_held(self) -> int:
        """How many are remembered."""
        return self._count("nonces")

    def ticket(self, jti: str) -> Ticket | None:
        """One ticket that has not been pruned."""
        return self._one("tickets", Ticket, "jti = ?", jti)

    def put_ticket(self, ticket: Ticket) -> None:
        """Insert or replace it."""
        self._put("tickets", ticket)

    def tickets_held(self) -> int:
        """How many are remembered."""
        return self._count("tickets")

    def member(self, node: NodeId) -> Member | None:
        """The member of that name."""
        return self._one("members", Member, "node = ?", node)

    def member_by_key(self, jkt: Jkt) -> Member | None:
        """The member with that key."""
        return self._one("members", Member, "jkt = ?", jkt)

    def put_member(self, member: Member) -> None:
        """Insert or replace it."""
        self._put("members", member)

    def members(self) -> list[Member]:
        """All of them, by name."""
        return self._all("members", Member, "node")

    def put_revocation(self, revoked: RevokedKey) -> None:
        """Insert or replace it."""
        self._put("revocations", revoked)

    def revocations(self) -> list[RevokedKey]:
        """All of them, by name."""
        return self._all("revocations", RevokedKey, "name")

    def is_revoked(self, jkt: Jkt) -> bool:
        """Whether a key is."""
        return self._one("revocations", RevokedKey, "jkt = ?", jkt) is not None

    def is_banned(self, node: NodeId) -> bool:
        """Whether a node name may not come back with any key."""
        return self._one("revocations", RevokedKey, "ban AND node = ?", node) is not None

    def prune(self, now_ms: int) -> None:
        """Forget nonces and tickets that have expired."""
        self._write("DELETE FROM nonces WHERE expires_at_ms <= ?", now_ms)
        self._write("DELETE FROM tickets WHERE issued_at_s <= ?", now_ms // 1000 - TICKET_LIFE_S)

    def append_audit(self, event: AuditEvent) -> AuditRow:
        """Add the next row of the chain."""
        last = self._audit_rows("ORDER BY seq DESC LIMIT 1")
        row = next_row(last[0] if last else None, event)
        marks = ", ".join("?" * (len(AuditEvent.__struct_fields__) + 2))
        self._write(
            f"INSERT INTO audit (seq, {_AUDIT}, hash) VALUES ({marks})",  # noqa: S608
            row.seq,
            *msgspec.structs.astuple(event),
            row.hash,
        )
        return row

    def audit(self, after_seq: int, limit: int) -> list[AuditRow]:
        """Rows in order, after a sequence number."""
        return self._audit_rows("WHERE seq > ? ORDER BY seq LIMIT ?", after_seq, limit)

    def _audit_rows(self, rest: str, *values: int) -> list[AuditRow]:
        found = self._database.rows(f"SELECT seq, {_AUDIT}, hash FROM audit {rest}", values)  # noqa: S608
        return [AuditRow(seq, _decode(AuditEvent, tuple(event)), digest) for seq, *event, digest in found]

    def _one(self, table: str, record: type[_Record], where: str, value: str | bytes) -> _Record | None:
        columns = ", ".join(record.__struct_fields__)
        found = self._database.rows(f"SELECT {columns} FROM {table} WHERE {where}", (value,))  # noqa: S608
        return _decode(record, found[0]) if found else None

    def _all(self, table: str, record: type[_Record], order: str) -> list[_Record]:
        columns = ", ".join(record.__struct_fields__)
        found = self._database.rows(f"SELECT {columns} FROM {table} ORDER BY {order}")  # noqa: S608
        return [_decode(record, values) for values in found]

    def _count(self, table: str) -> int:
        return int(self._database.rows(f"SELECT count(*) FROM {table}")[0][0])  # noqa: S608

    def _put(self, table: str, row: msgspec.Struct) -> None:
        # Never INSERT OR REPLACE: a second unique column (a member's key) would delete somebody else's row.
        columns = row.__struct_fields__
        key, *others = columns
        changes = ", ".join(f"{name} = excluded.{name}" for name in others)
        marks = ", ".join("?" * len(columns))
        self._write(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
            f" ON CONFLICT ({key}) DO UPDATE SET {changes}",
            *(_at_rest(name, getattr(row, name)) for name in columns),
        )

    def _write(self, sql: str, *values: Any) -> None:
        # Outside a transaction each statement would commit by itself.
        assert self._database.in_transaction
        self._database.execute(sql, values)


def _at_rest(column: str, value: Any) -> Any:
    if column in _JSON:
        return None if value is None else msgspec.json.encode(value).decode()
    return value


def _decode(record: type[_Record], values: tuple[Any, ...]) -> _Record:
    fields = dict(zip(record.__struct_fields__, values, strict=True))
    try:
        for name in _JSON & fields.keys():
            fields[name] = None if fields[name] is None else msgspec.json.decode(fields[name])
        for name in _FLAGS & fields.keys():
            fields[name] = bool(fields[name])
        return msgspec.convert(fields, record)
    except msgspec.MsgspecError as error:
        raise StorageFailed(f"a row of {record.__name__} is damaged: {error}") from None
