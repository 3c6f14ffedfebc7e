"""Real journals of the test stream, that forget, begin epochs and are copied."""

import shutil
from contextlib import closing
from pathlib import Path

from gateway.lake.collector import Collected, collect
from gateway.lake.homes import CopySource, OwnSource
from gateway.lake.lake import Lake
from outbox.ids import Epoch, NodeId, Seq
from outbox.journal import Journal
from outbox.reader import JournalReader
from outbox.records import Identity
from tests.appending import append
from tests.gateway.outboxes import KEY, NOW_MS, STREAM, entry, message, verify

SECOND = Epoch("000002-00000000000b")


def make(path: Path, node: NodeId = STREAM.node) -> Journal:
    return Journal.create(path, Identity(STREAM.mesh, node, STREAM.epoch))


def write(journal: Journal, batches: int, size: int = 5, salt: int = 0) -> None:
    """Append so many batches."""
    for _ in range(batches):
        first = journal.head().seq + 1
        entries = [entry(seq, message(seq + salt)) for seq in range(first, first + size)]
        journal.begin()
        append(journal, entries, KEY.sign)
        journal.commit()


def forget(journal: Journal, seq: int, epoch: Epoch = STREAM.epoch) -> None:
    journal.begin()
    journal.move_floor(epoch, Seq(seq))
    journal.commit()


def go_on(journal: Journal, epoch: Epoch = SECOND) -> None:
    journal.begin()
    journal.begin_epoch(epoch)
    journal.commit()


def forked(place: Path) -> tuple[Path, Path]:
    """A home, and a backup of it that was put back elsewhere: both went on from entry 20."""
    home, copy = place / "home.db", place / "copy.db"
    with closing(make(home)) as journal:
        write(journal, 4)
    shutil.copy(home, copy)
    for path, salt, batches in ((home, 0, 3), (copy, 1000, 5)):
        with closing(Journal.open(path)) as journal:
            write(journal, batches, salt=salt)
    return home, copy


def collect_own(path: Path, lake: Lake) -> Collected:
    with closing(JournalReader.open(path)) as reader:
        return collect(OwnSource(reader), lake, STREAM, verify, now_ms=NOW_MS, progress=lambda _: None)


def collect_copy(path: Path, lake: Lake) -> Collected:
    with closing(JournalReader.open(path)) as reader:
        source = CopySource(reader, STREAM)
        return collect(source, lake, STREAM, verify, now_ms=NOW_MS, progress=lambda _: None)
