"""No question that is asked of a running gateway goes through a whole table."""

import re
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from outbox.ids import AgentId, EventId, NodeId, Seq
from outbox.journal import Journal
from outbox.reader import JournalReader
from outbox.records import DeliveryState, Incident, Outcome, TurnState

ANN, MBP = AgentId("ann"), NodeId("mbp")
FIRST = (EventId("evt_" + "0" * 32), None)
SECOND = EventId(f"evt_{11:032x}")
NEWEST = (10**15, EventId("evt_" + "f" * 32))

QUESTIONS: dict[str, Callable[[Any], object]] = {
    "obligations": lambda journal: journal.obligations(NEWEST[1]),
    "due": lambda journal: (journal.next_delivery_ms(), journal.due_deliveries(9_000_000, 10)),
    "unanswered": lambda journal: journal.unanswered(MBP, Seq(9), 9000, 10),
    "unaccepted": lambda journal: journal.unaccepted(ANN, MBP, 10),
    "emitted_after": lambda journal: journal.emitted_after((MBP, Seq(0), FIRST[0]), 1),
    "position_of": lambda journal: journal.position_of(FIRST[0], 1),
    "entries_after": lambda journal: journal.entries_after(journal.identity().epoch, Seq(0), 1),
    "deliveries_beyond": lambda journal: journal.deliveries_beyond(MBP, Seq(0), FIRST, 1),
    "count_unaccepted": lambda journal: journal.count_unaccepted(),
    "dead_letters": lambda journal: journal.dead_letters(NEWEST, 10),
    "deliveries": lambda journal: journal.deliveries(DeliveryState, 10),
    "count_deliveries": lambda journal: journal.count_deliveries(),
    "open_turns": lambda journal: journal.open_turns(),
    "inbox": lambda journal: journal.inbox(ANN, done=False, limit=10),
    "inbox of all": lambda journal: journal.inbox(ANN, done=True, limit=10),
    "inbox_after": lambda journal: journal.inbox_after(
        ANN, journal.open_turns()[0].event_id, done=True, limit=9
    ),
    "ledger": lambda journal: journal.ledger(FIRST[0]),
    "turns_of": lambda journal: journal.turns_of(MBP, FIRST[0]),
    "received": lambda journal: journal.received(MBP, FIRST[0], ANN),
    "delivery": lambda journal: journal.delivery(FIRST[0], MBP),
    "open_incidents": lambda journal: journal.open_incidents(("maintenance",), 10**15, 10),
    "events_about": lambda journal: journal.events_about(FIRST[0]),
    "count_received": lambda journal: journal.count_received(),
    "broadcasts": lambda journal: journal.broadcasts((1, FIRST[0], MBP), 10),
    "missing_blobs": lambda journal: journal.missing_blobs(10),
    **{
        f"deliveries_in {state}": lambda journal, state=state: journal.deliveries_in(
            state, (0, NEWEST[1], None), 10
        )
        for state in DeliveryState
    },
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_finds_its_rows_by_an_index(
    open_journal: Callable[[], Journal], world: Any, question: str
) -> None:
    journal, asked = open_journal(), []
    journal.begin()
    journal.put_delivery(world.delivery(1))
    journal.put_received(world.received(1))
    journal.commit()
    journal.database.connection.set_trace_callback(asked.append)
    QUESTIONS[question](journal)
    journal.database.connection.set_trace_callback(None)
    queries = [sql for sql in asked if sql.startswith("SELECT")]
    assert queries
    for sql in queries:
        plan = [row[3] for row in journal.database.rows(f"EXPLAIN QUERY PLAN {sql}")]
        whole = [step for step in plan if re.fullmatch(r"SCAN (deliveries|received|outbox)", step)]
        assert not whole, (sql, plan)


def steps(reader: JournalReader, question: Callable[[Any], object]) -> int:
    """How many hundreds of instructions SQLite takes for it."""
    taken = []
    connection = reader._rows.database.connection
    connection.set_progress_handler(lambda: taken.append(1), 100)
    try:
        question(reader)
    finally:
        connection.set_progress_handler(None, 0)
    return len(taken)


def settle(journal: Journal, world: Any, numbers: Iterable[int]) -> None:
    """So many messages that came and are done, that were sent and are answered, and open incidents."""
    waiting = {DeliveryState.EMITTED, DeliveryState.RETRY_PENDING}
    states = [state for state in DeliveryState if state not in waiting]
    for number in numbers:
        journal.put_received(world.received(number, state=TurnState.DONE, outcome=Outcome.OK))
        journal.put_incident(Incident(kind="late", subject=f"{number}", opened_at_ms=number, detail=""))
        journal.put_delivery(world.delivery(number, state=states[number % len(states)], next_at_ms=None))


COUNTS = {"count_deliveries", "count_received"}
"""They count each row that is there; who asks them runs them beside the event loop."""


def test_what_a_reader_is_asked_takes_no_longer_in_a_long_history(
    open_journal: Callable[[], Journal], world: Any, tmp_path: Path
) -> None:
    """What is behind lies over the tables as views: an index serves only where SQLite sees through them."""
    journal = open_journal()
    history = iter(range(10, 6_000))
    taken: list[dict[str, int]] = []
    for size in (300, 5_000):
        journal.begin()
        settle(journal, world, islice(history, size))
        journal._rows.catch_up()
        journal.commit()
        journal.begin()
        settle(journal, world, islice(history, 20))
        journal.put_received(world.received(9_000 + size))
        journal.put_delivery(world.delivery(9_000 + size))
        journal.commit()
        reader = JournalReader.open(tmp_path / "journal.db")
        reader.obligations(FIRST[0])  # what is behind is learnt once
        taken.append({name: steps(reader, ask) for name, ask in QUESTIONS.items() if name not in COUNTS})
        reader.close()
    short, long = taken
    assert {name: (short[name], count) for name, count in long.items() if count > 2 * short[name] + 10} == {}
