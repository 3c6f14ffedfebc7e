"""Deliveries in SQL."""

from collections.abc import Iterable
from typing import NamedTuple

from outbox.ids import AgentId, EventId, NodeId, Seq, event_id_bytes
from outbox.limits import NEVER_MS, UNANSWERED_MAX
from outbox.records import Delivery, DeliveryState
from outbox.sql.rows import Asking, Writing
from outbox.tables import DELIVERIES, Value


class Quiet(NamedTuple):
    """No delivery is due before a time; before None: none ever, as things stand."""

    until_ms: int | None


class Oldest(NamedTuple):
    """No row of a node that is ``emitted`` was emitted before a time."""

    emitted_at_ms: int
    asks: int
    """How often to ask all the same before looking for it again: as many rows as that takes."""


# As the two indexes say it: without these words a query goes through the whole table.
_EMITTED = "state = 'emitted'"
_HEARD = "state <> 'emitted'"
_RETRY_PENDING = f"state = 'retry_pending' AND {_HEARD}"

_NEWEST = (
    "SELECT created_at_ms, event_id, node FROM deliveries WHERE state = '{0}' AND {1}"
    " ORDER BY created_at_ms DESC, event_id DESC, node DESC LIMIT ?"
)
"""Of each state its newest rows are found at one end of an index; of all states together they are not."""


def _at_rest(key: tuple[EventId, NodeId | None]) -> tuple[Value, ...]:
    return event_id_bytes(key[0]), key[1] or ""


class DeliveryReads(Asking):
    """The questions of ``outbox.store.deliveries``."""

    def delivery(self, event: EventId, node: NodeId | None) -> Delivery | None:
        """The row of an own deliverable event at one node, or at none."""
        return self._rows.find(DELIVERIES, event, node)

    def obligations(self, event: EventId) -> list[Delivery]:
        """All rows of an own deliverable event, in the order of their attempts."""
        clause = "WHERE event_id = ? ORDER BY attempt, node"
        return self._rows.all(DELIVERIES, clause, event_id_bytes(event))

    def due_deliveries(self, now_ms: int, limit: int) -> list[Delivery]:
        """Rows whose ``next_at_ms`` has come, oldest first."""
        clause = "WHERE next_at_ms <= ? ORDER BY next_at_ms, event_id, node LIMIT ?"
        return self._rows.all(DELIVERIES, clause, now_ms, limit)

    def quiet_until_ms(self) -> int | None:
        """A time before which no row is due; None when none will be."""
        return self.next_delivery_ms()

    def next_delivery_ms(self) -> int | None:
        """The earliest ``next_at_ms``."""
        return self._rows.least(DELIVERIES, "next_at_ms")

    def unanswered(self, node: NodeId, upto: Seq, emitted_before_ms: int, limit: int) -> list[Delivery]:
        """``emitted`` rows routed to a node, up to a position and a time, in the order of the outbox."""
        clause = (
            f"WHERE {_EMITTED} AND node = ? AND seq <= ? AND emitted_at_ms <= ?"
            " ORDER BY seq, event_id LIMIT ?"
        )
        return self._rows.all(DELIVERIES, clause, node, upto, emitted_before_ms, limit)

    def emitted_after(self, place: tuple[NodeId, Seq, EventId], limit: int) -> list[Delivery]:
        """``emitted`` rows after ``(node, seq, event)``, in that order."""
        node, seq, event = place
        clause = (
            f"WHERE {_EMITTED} AND (node, seq, event_id) > (?, ?, ?) ORDER BY node, seq, event_id LIMIT ?"
        )
        return self._rows.all(DELIVERIES, clause, node, seq, event_id_bytes(event), limit)

    def unaccepted(self, agent: AgentId, node: NodeId | None, limit: int) -> list[Delivery]:
        """``emitted`` and ``retry_pending`` rows for an agent that stand at a node, or at none, by seq."""
        clause = (
            f"WHERE ({_EMITTED} OR {_RETRY_PENDING}) AND to_agent = ? AND node = ?"
            " ORDER BY seq, event_id LIMIT ?"
        )
        return self._rows.all(DELIVERIES, clause, agent, node or "", limit)

    def deliveries_in(
        self, state: DeliveryState, after: tuple[int, EventId, NodeId | None], limit: int
    ) -> list[Delivery]:
        """Rows in a state after ``(created_at_ms, event, node)``, oldest first."""
        which = _EMITTED if state is DeliveryState.EMITTED else _HEARD
        clause = (
            f"WHERE state = ? AND {which} AND created_at_ms >= ?"
            " AND (created_at_ms, event_id, node) > (?, ?, ?) ORDER BY created_at_ms, event_id, node LIMIT ?"
        )
        at_ms, event, node = after
        place = (at_ms, event_id_bytes(event), node or "")
        return self._rows.all(DELIVERIES, clause, state, at_ms, *place, limit)

    def dead_letters(self, before: tuple[int, EventId], limit: int) -> list[Delivery]:
        """Dead letters that nobody dismissed, newest first, older than ``(created_at_ms, event)``."""
        clause = (
            f"WHERE state = 'dead_letter' AND {_HEARD} AND dismissed_at_ms IS NULL AND created_at_ms <= ?"
            " AND (created_at_ms, event_id) < (?, ?) ORDER BY created_at_ms DESC, event_id DESC LIMIT ?"
        )
        at_ms, event = before
        return self._rows.all(DELIVERIES, clause, at_ms, at_ms, event_id_bytes(event), limit)

    def count_unaccepted(self) -> dict[NodeId | None, int]:
        """``emitted`` and ``retry_pending`` rows by where they stand."""
        found = self._rows.counts(DELIVERIES, "node", f"WHERE {_EMITTED}", f"WHERE {_RETRY_PENDING}")
        return {NodeId(node) if node else None: count for node, count in found.items()}

    def deliveries(self, states: Iterable[str], limit: int) -> list[Delivery]:
        """The newest rows in any of these states, newest first."""
        with self._rows.moment():
            keys: list[tuple[int, bytes, str]] = []
            for state in {DeliveryState(state) for state in states}:
                which = _EMITTED if state is DeliveryState.EMITTED else _HEARD
                keys += self._rows.ask((DELIVERIES,), _NEWEST.format(state, which), (limit,))
            newest = [(event, node) for _, event, node in sorted(keys, reverse=True)[:limit]]
            found = self._rows.some(DELIVERIES, "event_id", sorted({event for event, _ in newest}))
        rows = {_at_rest((row.event_id, row.node)): row for row in found}
        return [rows[key] for key in newest]

    def deliveries_beyond(
        self, node: NodeId, seq: Seq, after: tuple[EventId, NodeId | None], looked_at: int
    ) -> tuple[list[Delivery], tuple[EventId, NodeId | None] | None]:
        """Of the next rows after a key those at a node with an attempt beyond a position; the last key."""
        behind, place = "WHERE (event_id, node) > (?, ?)", _at_rest(after)
        in_order = "ORDER BY event_id, node"
        ends = self._rows.all(DELIVERIES, f"{behind} {in_order} LIMIT 1 OFFSET ?", *place, looked_at - 1)
        last = (ends[0].event_id, ends[0].node) if ends else None
        if last is not None:
            behind, place = f"{behind} AND (event_id, node) <= (?, ?)", (*place, *_at_rest(last))
        rows = self._rows.all(DELIVERIES, f"{behind} AND node = ? AND seq > ? {in_order}", *place, node, seq)
        return rows, last

    def count_deliveries(self) -> dict[str, int]:
        """Rows by state."""
        return self._rows.counts(DELIVERIES, "state", f"WHERE {_EMITTED}", f"WHERE {_HEARD}")


class DeliveryWrites(Writing, DeliveryReads):
    """What the writer adds.

    Every tick asks what is due, and every page what its node has not answered for long, and hardly ever is
    there anything: it remembers since when.
    """

    _quiet: Quiet | None
    """None where it has to ask."""
    _oldest: dict[NodeId, Oldest]

    def unanswered(self, node: NodeId, upto: Seq, emitted_before_ms: int, limit: int) -> list[Delivery]:
        """``emitted`` rows routed to a node, up to a position and a time, in the order of the outbox."""
        known = self._oldest.get(node)
        if known is not None and known.emitted_at_ms > emitted_before_ms:
            return []
        if known is not None and known.asks:
            self._oldest[node] = known._replace(asks=known.asks - 1)
        else:
            oldest_ms, count = self._look_for_oldest(node)
            self._oldest[node] = Oldest(oldest_ms, count if oldest_ms <= emitted_before_ms else 0)
        return super().unanswered(node, upto, emitted_before_ms, limit)

    def _look_for_oldest(self, node: NodeId) -> tuple[int, int]:
        """When the first of a node's ``emitted`` rows was emitted, and how many rows that took."""
        some = f"SELECT emitted_at_ms FROM deliveries WHERE {_EMITTED} AND node = ? LIMIT ?"  # noqa: S608 - own
        sql = f"SELECT min(emitted_at_ms), count(*) FROM ({some})"  # noqa: S608 - own
        oldest_ms, count = self._rows.ask((DELIVERIES,), sql, (node, UNANSWERED_MAX + 1))[0]
        if count > UNANSWERED_MAX:
            return 0, count
        return NEVER_MS if oldest_ms is None else oldest_ms, count

    def quiet_until_ms(self) -> int | None:
        """A time before which no row is due, never too late; None when none will be."""
        if self._quiet is None:
            self._quiet = Quiet(self.next_delivery_ms())
        return self._quiet.until_ms

    def due_deliveries(self, now_ms: int, limit: int) -> list[Delivery]:
        """Rows whose ``next_at_ms`` has come, oldest first."""
        until_ms = self.quiet_until_ms()
        if until_ms is None or now_ms < until_ms:
            return []
        self._quiet = None
        return super().due_deliveries(now_ms, limit)

    def put_delivery(self, row: Delivery) -> None:
        """Insert or replace it."""
        self._rows.put(DELIVERIES, row)
        if row.node is not None and row.node in self._oldest:
            known = self._oldest[row.node]
            if row.emitted_at_ms < known.emitted_at_ms and row.state is DeliveryState.EMITTED:
                self._oldest[row.node] = known._replace(emitted_at_ms=row.emitted_at_ms)
        if self._quiet is not None and row.next_at_ms is not None:
            until_ms = self._quiet.until_ms
            if until_ms is None or row.next_at_ms < until_ms:
                self._quiet = Quiet(row.next_at_ms)
