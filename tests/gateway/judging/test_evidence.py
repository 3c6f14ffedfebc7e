"""Journals as they are on disk, also those that have forgotten something or begun a new epoch."""

from contextlib import closing
from pathlib import Path

import pytest

from auth.keyring import Keyring
from gateway.clock import Clock
from gateway.home import Home
from gateway.judging.evidence import read_node
from outbox.ids import Epoch, Seq
from outbox.journal import Journal
from tests.appending import append
from tests.gateway.outboxes import STREAM, entry, message

LATER = Epoch("000002-00000000000a")
CLOCK = Clock()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Of a node that has said six things, in batches of two."""
    home = Home(tmp_path, tmp_path)
    with closing(Journal.create(home.journal, STREAM, wal_bytes=0)) as journal:
        for first in (1, 3, 5):
            _say(home, journal, first, first + 1)
    return home


def _say(home: Home, journal: Journal, *numbers: int) -> None:
    key = Keyring(home.keys).node_key(CLOCK.entropy)
    first = journal.head().seq + 1
    journal.begin()
    append(journal, [entry(seq, message(number)) for seq, number in enumerate(numbers, first)], key.sign)
    journal.commit()


def test_a_whole_outbox_begins_at_its_genesis(home: Home) -> None:
    facts = read_node(home, CLOCK)
    assert (facts.broken, facts.has_forgotten) == ("", False)
    assert [said.seq for said in facts.outbox] == [1, 2, 3, 4, 5, 6]


def test_a_pruned_outbox_begins_at_its_floor(home: Home) -> None:
    whole = read_node(home, CLOCK)
    with closing(Journal.open(home.journal, wal_bytes=0)) as journal:
        journal.begin()
        journal.move_floor(STREAM.epoch, Seq(4))
        journal.commit()
    pruned = read_node(home, CLOCK)
    assert (pruned.broken, pruned.has_forgotten, pruned.start.seq) == ("", True, 4)
    assert pruned.outbox == whole.outbox[4:]


def test_all_epochs_are_read(home: Home) -> None:
    with closing(Journal.open(home.journal, wal_bytes=0)) as journal:
        journal.begin()
        journal.begin_epoch(LATER)
        journal.commit()
        _say(home, journal, 7, 8)
    facts = read_node(home, CLOCK)
    assert facts.broken == ""
    assert [(said.epoch, said.seq) for said in facts.outbox[5:]] == [
        (STREAM.epoch, 6),
        (LATER, 1),
        (LATER, 2),
    ]


def test_the_end_of_an_epoch_that_nobody_may_read_is_known_all_the_same(home: Home) -> None:
    with closing(Journal.open(home.journal, wal_bytes=0)) as journal:
        journal.begin()
        journal.hold()
        journal.commit()
        _say(home, journal, 7, 8)
        journal.begin()
        journal.begin_epoch(LATER)
        journal.commit()
        _say(home, journal, 9)
    facts = read_node(home, CLOCK)
    assert [(said.epoch, said.seq) for said in facts.outbox[5:]] == [(STREAM.epoch, 6), (LATER, 1)]
    assert {place.seq for place in facts.hidden} == {7, 8}
    assert (facts.last_of(STREAM.epoch), facts.shown_of(STREAM.epoch), facts.last_of(LATER)) == (8, 6, 1)
