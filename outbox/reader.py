"""Everything that can be asked of a journal, over any connection to it.

The journal itself asks through its own connection, and sees its open transaction. Links that catch up,
``trace``, the command line and the collector open a reader of their own beside it, and see what is committed.

Contents of the outbox are read with CAST: a column that was tampered with may hold text, and as bytes it goes
on to the hash, which tells.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Self

from outbox.chain import Checkpoint, Entry, Head, Page, Verify, genesis
from outbox.cursor import check_cursor, page_end
from outbox.database import Database
from outbox.errors import BrokenChain, StorageFailed, WorldError
from outbox.ids import AgentId, EventId, NodeId, Seq, event_id_bytes
from outbox.records import Delivery, Identity, Incident, LocalAgent, Quarantined, Received, Remembered
from outbox.schema import COMPONENT, MIGRATIONS, position, seq_of
from outbox.tables import (
    AGENTS,
    CURSORS,
    DELIVERIES,
    INCIDENTS,
    QUARANTINED,
    RECEIVED,
    REMEMBERED,
    Row,
    Table,
    Value,
    Values,
)
from outbox.verification import Progress, verify_outbox

_OPEN = "state IN ('held', 'queued', 'leased')"


class JournalReader:
    """Read-only view of one journal; the methods are those of ``outbox.store.Store``.

    All of them raise StorageFailed when the database cannot be read.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._identity = _identity(database)

    @classmethod
    def open(cls, path: Path) -> Self:
        """A reader with its own connection. Raises StorageFailed, DatabaseTooNew."""
        database = Database.open_read_only(path)
        try:
            database.check_version(COMPONENT, MIGRATIONS)
            return cls(database)
        except WorldError:
            database.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def identity(self) -> Identity:
        """Mesh, node and current epoch."""
        return self._identity

    # --- the outbox

    def genesis(self) -> Head:
        """The head of the outbox before its first entry."""
        return genesis(self._identity.mesh, self._identity.node, self._identity.epoch)

    def head(self) -> Head:
        """The last entry of the current epoch, or its genesis."""
        return self._checkpointed(0)

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """Entries after a cursor, up to a checkpoint; None at the end. Raises as ``Store.read``."""
        return self.page(after, self.head(), entries_max, bytes_max)

    def page(self, after: Head, head: Head, entries_max: int, bytes_max: int) -> Page | None:
        """The same for an outbox that is known to end at ``head``."""
        start = check_cursor(after, head=head)
        if start == head.seq:
            return None
        batches = self._database.rows(
            "SELECT position, bytes FROM checkpoints WHERE position > ? AND position <= ?"
            " ORDER BY position LIMIT ?",
            (self._key(start), self._key(head.seq), max(entries_max, 1) + 1),
        )
        sizes = ((seq_of(key), size) for key, size in batches)
        end = page_end(start, sizes, entries_max=entries_max, bytes_max=bytes_max)
        if end is None:
            raise StorageFailed(f"the outbox has no checkpoint after {start}")
        return Page(head.epoch, self._entries(start, end), self._checkpoint(end))

    def events_about(self, event: EventId) -> list[tuple[Seq, bytes]]:
        """Bodies of own entries that are this event or refer to it by corrId, in order."""
        raw = event_id_bytes(event)
        rows = self._database.rows(
            "SELECT position, CAST(body AS BLOB) FROM outbox"
            " WHERE event_id = ? OR corr_id = ? ORDER BY position",
            (raw, raw),
        )
        return [(seq_of(key), body) for key, body in rows]

    def verify(self, verify: Verify, start: Head | None = None, progress: Progress | None = None) -> Head:
        """Verify all of the outbox, or what follows ``start``. Raises BrokenChain, BadCheckpoint."""
        self._check_tail()
        return verify_outbox(self, verify, start or self.genesis(), progress)

    def verify_tail(self, verify: Verify) -> Head:
        """Verify the last batch, from the last checkpoint but one: what a start must know to append."""
        return self.verify(verify, self._checkpointed(1))

    def _check_tail(self) -> None:
        last = self._database.rows("SELECT max(position) FROM outbox")[0][0]
        if last is not None and last != self._key(self.head().seq):
            raise BrokenChain(
                f"the last entry is {seq_of(last)}, the last checkpoint is of {self.head().seq}"
            )

    def _checkpointed(self, back: int) -> Head:
        found = self._database.rows(
            "SELECT position, CAST(hash AS BLOB) FROM checkpoints ORDER BY position DESC LIMIT 1 OFFSET ?",
            (back,),
        )
        return Head(self._identity.epoch, seq_of(found[0][0]), found[0][1]) if found else self.genesis()

    def _entries(self, start: Seq, end: Seq) -> tuple[Entry, ...]:
        rows = self._database.rows(
            "SELECT position, CAST(header AS BLOB), CAST(body AS BLOB) FROM outbox"
            " WHERE position > ? AND position <= ? ORDER BY position",
            (self._key(start), self._key(end)),
        )
        return tuple(Entry(seq_of(key), header, body) for key, header, body in rows)

    def _checkpoint(self, seq: Seq) -> Checkpoint:
        who = self._identity
        digest, signature = self._database.rows(
            "SELECT CAST(hash AS BLOB), CAST(signature AS BLOB) FROM checkpoints WHERE position = ?",
            (self._key(seq),),
        )[0]
        return Checkpoint(who.mesh, who.node, who.epoch, seq, digest, signature)

    def _key(self, seq: Seq) -> int:
        return position(self._identity.epoch, seq)

    # --- the sender's side

    def delivery(self, event: EventId) -> Delivery | None:
        """The row of an own deliverable event."""
        return self.find(DELIVERIES, event)

    def due_deliveries(self, now_ms: int, limit: int) -> list[Delivery]:
        """Rows whose ``next_at_ms`` has come, oldest first."""
        return self._all(
            DELIVERIES, "WHERE next_at_ms <= ? ORDER BY next_at_ms, event_id LIMIT ?", now_ms, limit
        )

    def next_delivery_ms(self) -> int | None:
        """The earliest ``next_at_ms``."""
        found = self._database.rows("SELECT min(next_at_ms) FROM deliveries WHERE next_at_ms IS NOT NULL")
        return None if found[0][0] is None else int(found[0][0])

    def unanswered(self, node: NodeId, upto: Seq, emitted_before_ms: int, limit: int) -> list[Delivery]:
        """``emitted`` rows routed to a node, up to a position and a time, in the order of the outbox."""
        return self._all(
            DELIVERIES,
            "WHERE state = 'emitted' AND node = ? AND seq <= ? AND emitted_at_ms <= ?"
            " ORDER BY seq, event_id LIMIT ?",
            node,
            upto,
            emitted_before_ms,
            limit,
        )

    def deliveries(self, states: Iterable[str], limit: int) -> list[Delivery]:
        """The newest rows in any of these states, newest first."""
        wanted = [str(state) for state in states]
        marks = ", ".join("?" * len(wanted))
        clause = f"WHERE state IN ({marks}) ORDER BY created_at_ms DESC, event_id DESC LIMIT ?"
        return self._all(DELIVERIES, clause, *wanted, limit)

    def count_deliveries(self) -> dict[str, int]:
        """Rows by state."""
        return self._counts("SELECT state, count(*) FROM deliveries GROUP BY state")

    # --- the receiver's side

    def cursor(self, source: NodeId) -> Head | None:
        """How far another node's outbox was read and handled."""
        row = self.find(CURSORS, source)
        return row.head if row else None

    def cursors(self) -> dict[NodeId, Head]:
        """All of them, by name."""
        return {row.source: row.head for row in self._all(CURSORS, "ORDER BY source")}

    def received(self, event: EventId) -> Received | None:
        """The ledger row of an event that came for a local agent."""
        return self.find(RECEIVED, event)

    def open_turns(self) -> list[Received]:
        """Rows that are held, queued or leased, in order of acceptance."""
        return self._all(RECEIVED, f"WHERE {_OPEN} ORDER BY arrival")

    def inbox(self, agent: AgentId, *, done: bool, limit: int) -> list[Received]:
        """An agent's newest rows, newest last: the unfinished ones, or with ``done`` all of them."""
        # "+" hides the order from the planner: else it walks all of the agent's history for a few open rows
        which = "ORDER BY arrival" if done else f"AND {_OPEN} ORDER BY +arrival"
        rows = self._all(RECEIVED, f"WHERE to_agent = ? {which} DESC LIMIT ?", agent, limit)
        return rows[::-1]

    def count_received(self) -> dict[str, int]:
        """Rows by state."""
        return self._counts("SELECT state, count(*) FROM received GROUP BY state")

    # --- the rest

    def remembered(self, agent: AgentId, key: str) -> Remembered | None:
        """What this agent used an idempotency key for."""
        return self.find(REMEMBERED, agent, key)

    def quarantined(self) -> list[Quarantined]:
        """Entries that are no valid events, in order of arrival."""
        return self._all(QUARANTINED, "ORDER BY arrival")

    def incident(self, kind: str, subject: str) -> Incident | None:
        """One incident, open or closed."""
        return self.find(INCIDENTS, kind, subject)

    def incidents(self, *, open_only: bool) -> list[Incident]:
        """Incidents, oldest first."""
        which = "WHERE closed_at_ms IS NULL " if open_only else ""
        return self._all(INCIDENTS, f"{which}ORDER BY opened_at_ms, kind, subject")

    def agents(self) -> list[LocalAgent]:
        """The agents that live here, by name."""
        return self._all(AGENTS, "ORDER BY name")

    def find(self, table: Table[Row], *key: Value) -> Row | None:
        """One row by its key."""
        found = self._database.rows(table.select_key(), table.encode_key(key))
        return table.decode(found[0]) if found else None

    def _all(self, table: Table[Row], clause: str, *values: Value) -> list[Row]:
        rows: list[Values] = self._database.rows(table.select(clause), values)
        return [table.decode(row) for row in rows]

    def _counts(self, sql: str) -> dict[str, int]:
        return {str(state): int(count) for state, count in self._database.rows(sql)}


def _identity(database: Database) -> Identity:
    found = database.rows("SELECT mesh, node, epoch FROM identity")
    if len(found) != 1:
        raise StorageFailed(
            f"{database.path} belongs to no node", hint="make a home with: gateway init | join"
        )
    return Identity(*found[0])
