"""Journals that earlier versions made are opened, brought up to date and lose nothing.

``golden/journal-N.db.gz`` was made by version N of the schema: a batch or two, a row of every table. It is
never made anew.
"""

import gzip
from pathlib import Path
from typing import Any

import pytest

from outbox.errors import StorageFailed
from outbox.ids import AgentId, NodeId
from outbox.journal import Journal
from outbox.kinds import Outcome
from outbox.reader import JournalReader
from outbox.records import TurnState
from outbox.schema import COMPONENT, MIGRATIONS


def version(path: Path) -> int:
    return int(path.name.removeprefix("journal-").removesuffix(".db.gz"))


GOLDEN = sorted((Path(__file__).parent / "golden").glob("journal-*.db.gz"), key=version)
ANN, LAB, MBP = AgentId("ann"), NodeId("lab"), NodeId("mbp")


@pytest.fixture(params=GOLDEN, ids=lambda path: path.name)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"
    path.write_bytes(gzip.decompress(request.param.read_bytes()))
    return path


def test_every_earlier_version_has_its_file() -> None:
    assert [version(path) for path in GOLDEN] == [*range(1, len(MIGRATIONS))]


def test_a_reader_waits_for_the_writer_to_migrate(old: Path) -> None:
    with pytest.raises(StorageFailed, match="version") as caught:
        JournalReader.open(old)
    assert "start the gateway once" in caught.value.hint


def test_nothing_is_lost_on_the_way_up(old: Path, world: Any) -> None:
    journal = Journal.open(old, wal_bytes=0)
    assert journal.database.version(COMPONENT) == len(MIGRATIONS)
    assert journal.identity() == world.identity
    assert journal.verify(world.verify) == journal.head()
    assert journal.head().seq == 8
    assert [entry.seq for entry in journal.events_about(world.event(2))] == [2, 8]
    assert journal.count_deliveries() == {"processed": 1, "emitted": 1}
    assert journal.open_turns() == [
        world.received(24, source=LAB, state=TurnState.LEASED, lease_id="l", session="s", delivery_count=2),
        world.received(22),
        world.received(23, state=TurnState.HELD, source=LAB),
    ]
    done = journal.received(MBP, world.event(21), ANN)
    assert done is not None
    assert (done.outcome, done.done_at_ms) == (Outcome.OK, 6000)
    remembered = journal.remembered(ANN, "k")
    assert remembered is not None
    assert remembered.event_id == world.event(1)
    assert [row.reason for row in journal.quarantined()] == ["no event"]
    assert [row.subject for row in journal.incidents(open_only=True)] == ["lab/2"]
    assert [row.name for row in journal.agents()] == [ANN]
    cursor = journal.cursor(MBP)
    assert cursor is not None
    assert cursor.seq == 4
    journal.close()


def test_a_journal_that_was_brought_up_to_date_goes_on(old: Path, world: Any) -> None:
    journal = Journal.open(old, wal_bytes=0)
    journal.begin()
    world.append(journal, world.entry(9, 9))
    journal.put_received(world.received(22, source=LAB, seq=9))
    journal.commit()
    journal.close()
    again = Journal.open(old, wal_bytes=0)
    assert again.verify(world.verify).seq == 9
    assert [row.source for row in again.ledger(world.event(22))] == [MBP, LAB]
    assert again.open_turns()[-1].source == LAB, "what came after the migration comes last"
    again.close()
