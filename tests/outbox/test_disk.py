"""A journal on a disk that is really full, and a write-ahead log beside a reader that stays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outbox.chain import Head
from outbox.errors import StorageFull
from outbox.journal import Journal
from outbox.limits import WAL_BYTES
from outbox.reader import JournalReader

MIB = 1024 * 1024


def test_a_full_disk_loses_nothing_and_is_left_behind(small_disk: Path, world: Any) -> None:
    journal = Journal.create(small_disk / "journal.db", world.identity, wal_bytes=0)
    world.fill(journal, 2, body=b"x" * 1000)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * 8 * MIB)
    with pytest.raises(StorageFull) as caught:
        world.fill(journal, 1_000, batch=9, body=b"x" * 9000)
    assert caught.value.retryable
    journal.rollback()
    kept = journal.head()
    assert journal.verify(world.verify) == kept, "reads go on"
    journal.close()
    again = Journal.open(small_disk / "journal.db")
    assert again.head() == kept, "it starts on a full disk, and nothing is missing"
    ballast.unlink()
    world.fill(again, 3, body=b"x" * 9000)
    assert again.verify(world.verify).seq == kept.seq + 3
    again.close()


def test_room_that_retention_makes_is_room_for_what_comes(small_disk: Path, world: Any) -> None:
    journal = Journal.create(small_disk / "journal.db", world.identity, wal_bytes=0)
    for _ in range(40):
        world.fill(journal, 9, batch=9, body=b"x" * 1000)
        if journal.size().entries > 500:
            journal.begin()
            journal.move_floor(journal.head().epoch, journal.oldest_batches(50)[-1].seq)
            journal.commit()
    assert journal.head().seq == 40 * 81
    assert journal.verify(world.verify) == journal.head()
    journal.close()


@pytest.mark.parametrize("asks", ["verify", "page", "rows"])
def test_a_reader_that_stays_does_not_let_the_log_grow(
    open_journal: Callable[[], Journal], world: Any, tmp_path: Path, asks: str
) -> None:
    journal = open_journal()
    reader = JournalReader.open(tmp_path / "journal.db")
    at, largest, written = reader.genesis(), 0, 0
    while written < 6 * WAL_BYTES:
        world.fill(journal, 8, batch=8, body=b"x" * 16_000)
        written += 8 * 8 * 16_000
        if asks == "verify":
            reader.verify(world.verify, Head(at.epoch, at.seq, at.hash))
        elif asks == "page":
            page = reader.read(at, 100, MIB)
            at = page.checkpoint.head if page is not None else at
        else:
            reader.count_deliveries()
            reader.open_turns()
        largest = max(largest, (tmp_path / "journal.db-wal").stat().st_size)
        at = reader.head() if asks == "verify" else at
    reader.close()
    assert largest < 2 * WAL_BYTES, "each question ends its own transaction"
