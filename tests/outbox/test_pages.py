"""How many pages a commit writes: each index that has a row for some milliseconds costs one, and 6 µs."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from outbox.chain import Head
from outbox.ids import NodeId, Seq
from outbox.journal import Journal
from outbox.records import DeliveryState, TurnState
from tests.outbox.conftest import EPOCH

MBP = NodeId("mbp")
COMMITS = 20

Open = Callable[[], Journal]


def send(journal: Journal, world: Any, number: int) -> None:
    world.append(journal, world.entry(journal.head().seq + 1, number, body=bytes(400)))
    journal.put_delivery(world.delivery(number))


def settle(journal: Journal, world: Any, number: int) -> None:
    row = journal.delivery(world.event(number), MBP)
    assert row is not None
    journal.put_delivery(replace(row, state=DeliveryState.REPLIED, next_at_ms=None))
    journal.put_cursor(MBP, Head(EPOCH, Seq(number), bytes(32)), bytes(64))


def accept(journal: Journal, world: Any, number: int) -> None:
    journal.put_received(world.received(number, body=bytes(400), state=TurnState.LEASED))
    world.append(journal, world.entry(journal.head().seq + 1, 1000 + number, corr=number))
    journal.put_cursor(MBP, Head(EPOCH, Seq(number), bytes(32)), bytes(64))


def end(journal: Journal, world: Any, number: int) -> None:
    row = journal.received(MBP, world.event(number), world.received(number).to_agent)
    assert row is not None
    journal.put_received(replace(row, state=TurnState.DONE))
    world.append(journal, world.entry(journal.head().seq + 1, 2000 + number, corr=number))


@pytest.mark.parametrize(
    ("before", "what", "pages"),
    [
        # entry with its index, checkpoint, changes
        (None, send, 4),
        # changes
        (send, settle, 2),
        # changes; entry, two indexes, checkpoint
        (None, accept, 5),
        # changes; entry, two indexes, checkpoint
        (accept, end, 5),
    ],
    ids=["send", "settle", "accept", "end"],
)
def test_a_commit_writes_few_pages(
    open_journal: Open, world: Any, before: Callable[..., None] | None, what: Callable[..., None], pages: int
) -> None:
    """The middle of many: now and then a page is full."""
    journal = open_journal()
    journal.database.rows("PRAGMA wal_autocheckpoint = 0")
    written: list[int] = []
    for number in range(1, COMMITS + 1):
        for step in (before, what):
            if step is not None:
                journal.database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
                journal.begin()
                step(journal, world, number)
                journal.commit()
        written += [journal.database.rows("PRAGMA wal_checkpoint(PASSIVE)")[0][1]]
    assert sorted(written)[COMMITS // 2] <= pages
