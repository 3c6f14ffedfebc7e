"""The journal knows of most events that they have not come, without asking its table."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from outbox.ids import NodeId, Seq
from outbox.journal import Journal
from outbox.recent import Recent
from outbox.records import TurnState
from tests.outbox.conftest import EPOCH

Open = Callable[[], Journal]
Steps = list[tuple[str, int]]

WHAT = ["come", "come", "come", "commit", "roll back", "prune", "open"]
STEPS = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(1, 12)), max_size=40)


class Remembering:
    """A journal that remembers the turns of four events at most, and what should be in it."""

    def __init__(self, journal: Journal, world: Any) -> None:
        self.journal, self.world = journal, world
        self.kept: set[int] = set()
        self.come: set[int] = set()
        self.anew()

    def anew(self) -> None:
        self.journal = Journal(self.journal.database)
        self.journal._turns = Recent(4)

    def step(self, what: str, number: int) -> None:
        if what == "come":
            self.journal.put_received(self.world.received(number, state=TurnState.DONE))
            self.come.add(number)
        elif what == "prune":
            self.journal.prune_ledger(NodeId("mbp"), EPOCH, Seq(number), 3)
            self.come -= set(sorted(seq for seq in self.come if seq <= number)[:3])
        else:
            self.end(what)

    def end(self, what: str) -> None:
        if what == "commit":
            self.journal.commit()
            self.kept = set(self.come)
        else:
            self.journal.rollback()
            self.come = set(self.kept)
        if what == "open":
            self.anew()
        self.journal.begin()

    def knows(self, number: int) -> bool:
        """Only few are asked for: who asks for all remembers all."""
        return bool(self.journal.ledger(self.world.event(number)))


def test_an_event_is_known_whatever_was_forgotten(open_journal: Open, world: Any) -> None:
    journal = open_journal()

    @given(STEPS)
    def walk(steps: Steps) -> None:
        for table in ("received", "changes"):
            journal.database.execute(f"DELETE FROM {table}")
        remembering = Remembering(journal, world)
        journal.begin()
        for what, number in steps:
            remembering.step(what, number)
            assert remembering.knows(number) is (number in remembering.come)
        remembering.step("commit", 1)
        assert {seq for seq in range(1, 13) if remembering.knows(seq)} == remembering.come
        remembering.journal.rollback()

    walk()


def test_a_new_event_costs_no_query(open_journal: Open, world: Any) -> None:
    journal = open_journal()
    asked: list[str] = []
    journal.database.connection.set_trace_callback(
        lambda sql: asked.append(sql) if "event_id =" in sql else None
    )
    journal.begin()
    for number in (5, 6, 7):
        assert journal.ledger(world.event(number)) == []
        journal.put_received(world.received(number))
    journal.commit()
    assert asked == []
    journal.begin()
    assert [len(journal.ledger(world.event(number))) for number in (5, 6, 7, 8)] == [1, 1, 1, 0]
    journal.rollback()
    assert asked == []
    journal.begin()
    assert [len(journal.ledger(world.event(number))) for number in (4, 7, 8)] == [0, 1, 0]
    assert len(asked) == 2


def test_large_turns_are_forgotten_sooner_and_found_all_the_same(open_journal: Open, world: Any) -> None:
    journal = open_journal()
    journal._turns = Recent(bytes_max=10_000)
    for number in range(1, 21):
        journal.begin()
        journal.put_received(world.received(number, body=bytes(1_000)))
        journal.commit()
    assert sum(journal._turns.get(world.event(number)) is not None for number in range(1, 21)) <= 10
    journal.begin()
    for number in range(1, 21):
        assert [len(row.body) for row in journal.ledger(world.event(number))] == [1_000]
    journal.rollback()
