"""No question that is asked of a running gateway goes through a whole table."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from outbox.ids import AgentId, EventId, NodeId, Seq
from outbox.journal import Journal
from outbox.records import DeliveryState

ANN, MBP = AgentId("ann"), NodeId("mbp")
FIRST = (EventId("evt_" + "0" * 32), None)
NEWEST = (10**15, EventId("evt_" + "f" * 32))

QUESTIONS: dict[str, Callable[[Journal], object]] = {
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
