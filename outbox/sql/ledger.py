"""The ledger in SQL."""

from outbox.ids import AgentId, EventId, NodeId, event_id_bytes, event_id_from_bytes
from outbox.recent import RecentRows
from outbox.records import Received, TurnState
from outbox.sql.rows import Asking, Writing
from outbox.tables import RECEIVED, Value

Places = tuple[tuple[NodeId, AgentId], ...]
"""Who sent an event, and to whom."""

_OPEN_STATES = (TurnState.HELD, TurnState.QUEUED, TurnState.LEASED)
_OPEN = "state IN ('held', 'queued', 'leased')"

_NEWEST = (
    "SELECT arrival FROM (SELECT arrival FROM received WHERE state = '{0}' AND to_agent = ?1"
    " ORDER BY arrival DESC LIMIT ?2)"
)
"""Of each state its newest rows are found at one end of the index; of all states together they are not."""

_NEXT = (
    "SELECT arrival FROM (SELECT arrival FROM received WHERE state = '{0}' AND to_agent = ?1 AND arrival > ?3"
    " ORDER BY arrival LIMIT ?2)"
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
        states = TurnState if done else _OPEN_STATES
        newest = " UNION ALL ".join(_NEWEST.format(state) for state in states)
        clause = f"WHERE arrival IN ({newest}) ORDER BY arrival DESC LIMIT ?2"
        return self._rows.all(RECEIVED, clause, agent, limit)[::-1]

    def inbox_after(self, agent: AgentId, after: EventId, *, done: bool, limit: int) -> list[Received] | None:
        """The rows that were accepted next after an event's own, oldest first; None when there is no such."""
        ((arrival,),) = self._rows.ask(
            (RECEIVED,),
            "SELECT MIN(arrival) FROM received WHERE event_id = ? AND to_agent = ?",
            (event_id_bytes(after), agent),
        )
        if arrival is None:
            return None
        states = TurnState if done else _OPEN_STATES
        following = " UNION ALL ".join(_NEXT.format(state) for state in states)
        clause = f"WHERE arrival IN ({following}) ORDER BY arrival LIMIT ?2"
        return self._rows.all(RECEIVED, clause, agent, limit, arrival)

    def count_received(self) -> dict[str, int]:
        """Rows by state."""
        return self._rows.counts(RECEIVED, "state")


class LedgerWrites(Writing, LedgerReads):
    """What the writer adds. It remembers for whom an event has come: all that happens to one asks for it.

    Ids begin with the time, so nearly every event that comes has a higher one than any row that is not
    remembered: that there is no row of it is known then. Clocks that go wrong cost a query, no more.
    """

    _waiting_places: dict[EventId, Places]
    """Of events that this transaction asked for: its own rows may not be in the table yet."""
    _recent_places: RecentRows[Places]
    _unknown_upto: EventId | None
    """No row that is not remembered has a higher id; None where the table has to be asked."""

    def received(self, source: NodeId, event: EventId, agent: AgentId) -> Received | None:
        """The row of an event that a node sent to a local agent."""
        return super().received(source, event, agent) if (source, agent) in self._places(event) else None

    def ledger(self, event: EventId) -> list[Received]:
        """The rows of everybody who sent an event under this id, in order of acceptance.

        Every answer of an agent asks: the buffer is not written for it.
        """
        rows = (super(LedgerWrites, self).received(*_key(place, event)) for place in self._places(event))
        return [row for row in rows if row is not None]

    def turns_of(self, source: NodeId, event: EventId) -> list[Received]:
        """The rows of all local agents that the event came for, in order of acceptance."""
        return [row for row in self.ledger(event) if row.source == source]

    def put_received(self, row: Received) -> None:
        """Insert or replace it."""
        self._rows.put(RECEIVED, row)
        places, place = self._places(row.event_id), (row.source, row.to_agent)
        if place not in places:
            self._waiting_places[row.event_id] = (*places, place)

    def _places(self, event: EventId) -> Places:
        """Which nodes have sent the event, and to whom, in order of acceptance."""
        known = self._waiting_places.get(event)
        if known is None:
            known = self._recent_places.get((event,))
            if known is None:
                known = self._kept_places(event) if event <= self._highest_unknown() else ()
            self._waiting_places[event] = known
        return known

    def _kept_places(self, event: EventId) -> Places:
        sql = "SELECT source, to_agent FROM received WHERE event_id = ? ORDER BY arrival"
        return tuple(self._rows.ask((RECEIVED,), sql, (event_id_bytes(event),)))

    def _highest_unknown(self) -> EventId:
        if self._unknown_upto is None:
            highest = self._rows.ask((RECEIVED,), "SELECT max(event_id) FROM received")[0][0]
            self._unknown_upto = event_id_from_bytes(highest or bytes(16))
        return self._unknown_upto

    def _keep_places(self) -> None:
        """The transaction is committed."""
        found: dict[tuple[Value, ...], Places] = {
            (event,): places for event, places in self._waiting_places.items() if places
        }
        forgotten = self._recent_places.keep_all(found)
        if forgotten and self._unknown_upto is not None:
            self._unknown_upto = EventId(max(self._unknown_upto, *(str(event) for (event,) in forgotten)))
        self._waiting_places.clear()

    def _forget_places(self) -> None:
        """The transaction is taken back, or rows were deleted."""
        self._recent_places.clear()
        self._waiting_places.clear()
        self._unknown_upto = None


def _key(place: tuple[NodeId, AgentId], event: EventId) -> tuple[NodeId, EventId, AgentId]:
    return place[0], event, place[1]
