"""Questions that may take long run beside the loop, one after the other, and fail like any."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.lookups import Lookups
from outbox.errors import StorageFailed
from outbox.ids import Epoch, MeshId, NodeId
from outbox.journal import Journal
from outbox.reader import JournalReader
from outbox.records import Identity

IDENTITY = Identity(MeshId("mesh-" + "x" * 38), NodeId("vps"), Epoch("000001-0123456789ab"))


@pytest.fixture
def lookups(tmp_path: Path) -> Iterator[Lookups]:
    Journal.create(tmp_path / "journal.db", IDENTITY, wal_bytes=0).close()
    opened = Lookups(tmp_path / "journal.db")
    yield opened
    opened.close()


async def test_the_loop_goes_on_while_a_question_runs(lookups: Lookups) -> None:
    """The question ends only by what the loop does meanwhile."""
    goes_on, asked = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(reader: JournalReader) -> NodeId:
        loop.call_soon_threadsafe(asked.set)
        assert goes_on.wait(30)
        return reader.identity().node

    answer = asyncio.ensure_future(lookups.ask(slow))
    await asked.wait()
    assert not answer.done()
    goes_on.set()
    assert await answer == "vps"


async def test_questions_are_answered_in_their_order_on_one_thread(lookups: Lookups) -> None:
    order: list[int] = []
    threads: set[int] = set()

    def note(number: int) -> None:
        order.append(number)
        threads.add(threading.get_ident())

    await asyncio.gather(*(lookups.ask(lambda _, number=number: note(number)) for number in range(20)))
    assert order == list(range(20))
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_a_question_that_fails_harms_no_other(lookups: Lookups) -> None:
    def fails(_: JournalReader) -> None:
        raise StorageFailed("torn")

    with pytest.raises(StorageFailed, match="torn"):
        await lookups.ask(fails)
    assert await lookups.ask(lambda reader: reader.count_received()) == {}


async def test_closing_waits_for_the_answers_that_are_awaited(tmp_path: Path) -> None:
    Journal.create(tmp_path / "journal.db", IDENTITY, wal_bytes=0).close()
    lookups = Lookups(tmp_path / "journal.db")
    answers = [asyncio.ensure_future(lookups.ask(lambda reader: reader.identity().node)) for _ in range(9)]
    await asyncio.sleep(0)
    lookups.close()
    assert await asyncio.gather(*answers) == ["vps"] * 9


def test_without_a_journal_it_says_so_and_leaves_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(StorageFailed):
        Lookups(tmp_path / "journal.db")
    assert threading.active_count() == before
