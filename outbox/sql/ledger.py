"""The ledger in SQL."""

from outbox.ids import AgentId, EventId, NodeId, event_id_bytes, event_id_from_bytes
from outbox.recent import Recent
from outbox.records import Received, TurnState
from outbox.sql.rows import Asking, Writing
from outbox.tables import RECEIVED, Value

Turns = dict[tuple[NodeId, AgentId], Received]
"""Those of one event, by who sent it and to whom."""

_OPEN_STATES = (TurnState.HELD, TurnState.QUEUED, TurnState.LEASED)
_OPEN = "state IN ('held', 'queued', 'leased')"

_NEWEST = "SELECT arrival FROM received WHERE state = ? AND to_agent = ? ORDER BY arrival DESC LIMIT ?"
"""Of each state its newest rows are found at one end of the index; of all states together they are not."""

_NEXT = (
    "SELECT arrival FROM received WHERE state = ? AND to_agent = ? AND arrival > ? ORDER BY arrival LIMIT ?"
)


class LedgerReads(Asking):
    """The questions of ``outbox.store.ledger``."""

    def received(self, source: NodeId, event: EventId, agent: AgentId) -> Received | None:
        """The row of an event that a node sent to a local agent."""
        return self._rows.find(RECEIVED, source, event, agent)

    def turns_of(self, source: NodeId, event: EventId) -> list[Received]:
        """The rows of all local agents that the event came for, in order of acceptance."""
        clause = "WHERE event_id = ? AND source = ? ORDER BY arrival"
        return self._rows.all(RECEIVED, clause, event_id_bytes(event), source)

    def broadcasts(self, after: tuple[int, EventId, NodeId], limit: int) -> list[Received]:
        """Rows of broadcasts after a place, by expiry, event, source and acceptance."""
        clause = (
            "WHERE share IN ('everyone', 'late') AND expires_at_ms >= ?"
            " AND (expires_at_ms, event_id, source) > (?, ?, ?)"
            " ORDER BY expires_at_ms, event_id, source, arrival LIMIT ?"
        )
        at_ms, event, source = after
        return self._rows.all(RECEIVED, clause, at_ms, at_ms, event_id_bytes(event), source, limit)

    def ledger(self, event: EventId) -> list[Received]:
        """The rows of everybody who sent an event under this id, in order of acceptance."""
        return self._rows.all(RECEIVED, "WHERE event_id = ? ORDER BY arrival", event_id_bytes(event))

    def open_turns(self) -> list[Received]:
        """Rows that are held, queued or leased, in order of acceptance."""
        return self._rows.all(RECEIVED, f"WHERE {_OPEN} ORDER BY arrival")

    def inbox(self, agent: AgentId, *, done: bool, limit: int) -> list[Received]:
        """An agent's newest rows, newest last: the unfinished ones, or with ``done`` all of them."""
        with self._rows.moment():
            found = self._arrivals(_NEWEST, done=done, agent=agent, place=(), limit=limit)
            return self._rows.some(RECEIVED, "arrival", found[-limit:])

    def inbox_after(self, agent: AgentId, after: EventId, *, done: bool, limit: int) -> list[Received] | None:
        """The rows that were accepted next after an event's own, oldest first; None when there is no such."""
        with self._rows.moment():
            ((arrival,),) = self._rows.ask(
                (RECEIVED,),
                "SELECT MIN(arrival) FROM received WHERE event_id = ? AND to_agent = ?",
                (event_id_bytes(after), agent),
            )
            if arrival is None:
                return None
            found = self._arrivals(_NEXT, done=done, agent=agent, place=(arrival,), limit=limit)
            return self._rows.some(RECEIVED, "arrival", found[:limit])

    def _arrivals(
        self, sql: str, *, done: bool, agent: AgentId, place: tuple[Value, ...], limit: int
    ) -> list[int]:
        """Of the turns of an agent in each state, in order."""
        states = TurnState if done else _OPEN_STATES
        return sorted(
            arrival
            for state in states
            for (arrival,) in self._rows.ask((RECEIVED,), sql, (state, agent, *place, limit))
        )

    def count_received(self) -> dict[str, int]:
        """Rows by state."""
        return self._rows.counts(RECEIVED, "state")


class LedgerWrites(Writing, LedgerReads):
    """What the writer adds. It remembers what has come lately, all turns of an event together.

    Ids begin with the time, so nearly every event that comes has a higher one than any that has turns and is
    not remembered: that there is none of it is known then. Clocks that go wrong cost a query, no more.
    """

    _turns: Recent[EventId, Turns]
    _unknown_upto: EventId | None
    """No event that has turns and is not remembered has a higher id; None where the table has to be asked."""

    def received(self, source: NodeId, event: EventId, agent: AgentId) -> Received | None:
        """The row of an event that a node sent to a local agent."""
        return self._turns_about(event).get((source, agent))

    def ledger(self, event: EventId) -> list[Received]:
        """The rows of everybody who sent an event under this id, in order of acceptance."""
        return list(self._turns_about(event).values())

    def turns_of(self, source: NodeId, event: EventId) -> list[Received]:
        """The rows of all local agents that the event came for, in order of acceptance."""
        return [row for row in self._turns_about(event).values() if row.source == source]

    def put_received(self, row: Received) -> None:
        """Insert or replace it."""
        self._rows.put(RECEIVED, row)
        self._turns_about(row.event_id)[row.source, row.to_agent] = row
        self._turns.bytes += len(row.body)

    def _turns_about(self, event: EventId) -> Turns:
        """All turns of an event, in order of acceptance; of one that has none, where its first will be."""
        turns = self._turns.get(event)
        if turns is None:
            rows = super().ledger(event) if event <= self._highest_unknown() else ()
            turns = {(row.source, row.to_agent): row for row in rows}
            self._turns.keep(event, turns)
        return turns

    def _highest_unknown(self) -> EventId:
        if self._unknown_upto is None:
            highest = self._rows.ask((RECEIVED,), "SELECT max(event_id) FROM received")[0][0]
            self._unknown_upto = event_id_from_bytes(highest or bytes(16))
        return self._unknown_upto

    def _age_turns(self) -> None:
        """The transaction is committed."""
        forgotten = [event for event, turns in self._turns.age().items() if turns]
        if forgotten and self._unknown_upto is not None:
            self._unknown_upto = max(self._unknown_upto, *forgotten)

    def _forget_turns(self) -> None:
        """The transaction is taken back, or rows were deleted."""
        self._turns.clear()
        self._unknown_upto = None
