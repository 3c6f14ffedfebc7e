"""Epochs that ended: what a copy has of them and the lake lacks is collected after later ones."""

import shutil
from contextlib import closing

import pytest

from gateway.lake.collector import collect
from gateway.lake.exported import FileSource, export
from gateway.lake.homes import CopySource, OwnSource
from gateway.lake.lake import Lake
from outbox.chain import genesis
from outbox.errors import StreamForked
from outbox.ids import NodeId
from outbox.journal import Journal
from outbox.reader import JournalReader
from outbox.records import Identity
from spark.layout import EVENTS, FORKS, covering, stream_dir
from tests.gateway.lake import journals
from tests.gateway.lake.journals import SECOND
from tests.gateway.outboxes import NOW_MS, STREAM, verify

FIRST = STREAM.epoch


class FromTheCurrent(OwnSource):
    """As over a link: whoever has read nothing begins in the current epoch."""

    def __init__(self, reader):
        super().__init__(reader)
        self.genesis = lambda: genesis(STREAM.mesh, STREAM.node, reader.identity().epoch)


@pytest.fixture
def lake(tmp_path):
    return Lake(tmp_path / "lake")


def held(lake, epoch, table=EVENTS):
    """Places of an epoch that are in the lake."""
    spans = covering(path.name for path in (lake.root / table / stream_dir(STREAM.node, epoch)).glob("*"))
    return {seq for span in spans for seq in range(span.first, span.last + 1)}


def upto(seq, first=1):
    return set(range(first, seq + 1))


def forgetful(place, shown=20, forgotten=15):
    """Homes: of a node that has forgotten the end of its first epoch and goes on in a second, and of a peer
    that had read all of the first."""
    home, peer = place / "home.db", place / "peer.db"
    with closing(journals.make(home)) as journal:
        journals.write(journal, shown // 5)
    before = place / "before.db"
    shutil.copy(home, before)
    with closing(Journal.open(home)) as journal:
        journals.write(journal, forgotten // 5)
    copy_of(home, peer)
    with closing(Journal.open(before)) as journal:
        journals.go_on(journal)
        journals.write(journal, 2)
    return before, peer


def copy_of(home, peer):
    ours = Identity(STREAM.mesh, NodeId("seed"), FIRST)
    made = Journal.open(peer) if peer.exists() else Journal.create(peer, ours)
    with closing(made) as journal, closing(JournalReader.open(home)) as reader:
        at = journal.copy(STREAM.node)
        head = reader.genesis() if at is None else genesis(STREAM.mesh, STREAM.node, SECOND)
        journal.begin()
        while page := reader.read(head, 5, 1):
            journal.extend_copy(STREAM.node, page, NOW_MS)
            head = page.checkpoint.head
        journal.commit()


def bring(lake, path, kind=OwnSource, *, earlier=True):
    with closing(JournalReader.open(path)) as reader:
        source = kind(reader, STREAM) if kind is CopySource else kind(reader)
        return collect(
            source, lake, STREAM, verify, now_ms=NOW_MS, progress=lambda _: None,
            earlier=source if earlier else None,
        )  # fmt: skip


def test_an_epoch_that_the_lake_lacks_is_collected_after_a_later_one(lake, tmp_path):
    home, _ = forgetful(tmp_path)
    done = bring(lake, home, FromTheCurrent, earlier=False)
    assert (done.rows, held(lake, FIRST), held(lake, SECOND)) == (10, set(), upto(10))
    done = bring(lake, home, FromTheCurrent)
    assert (done.rows, done.head.epoch, held(lake, FIRST)) == (20, SECOND, upto(20))
    assert bring(lake, home, FromTheCurrent).rows == 0
    assert lake.verify(lambda _: verify).faults == ()


def test_what_its_writer_has_forgotten_comes_from_a_peer_that_had_read_it(lake, tmp_path):
    home, peer = forgetful(tmp_path)
    bring(lake, home)
    assert (held(lake, FIRST), held(lake, SECOND)) == (upto(20), upto(10))
    assert bring(lake, peer, CopySource).rows == 15
    assert (held(lake, FIRST), lake.cursor(STREAM.mesh, STREAM.node).epoch) == (upto(35), SECOND)
    assert bring(lake, home).rows == 0, "the lake has more of it than its writer, which is no fault"
    copy_of(home, peer)
    assert bring(lake, peer, CopySource).rows == 0


def test_a_copy_that_was_trimmed_is_had_from_its_first_checkpoint_and_joins_what_the_lake_has(lake, tmp_path):
    home, peer = forgetful(tmp_path)
    copy_of(home, peer)
    with closing(Journal.open(peer)) as journal:
        (first, _) = journal.copies()
        journal.begin()
        journal.trim_copy(first, 1)
        journal.commit()
    bring(lake, home, FromTheCurrent, earlier=False)
    assert bring(lake, peer, CopySource).rows > 0
    assert (held(lake, FIRST), held(lake, SECOND)) == (upto(35, first=11), upto(10)), "from home, the rest"
    assert bring(lake, peer, CopySource).rows == 0
    assert bring(lake, home).rows == 10
    assert held(lake, FIRST) == upto(35), "its writer had the rest"


def test_another_history_of_an_epoch_that_ended_is_evidence_and_told_once(lake, tmp_path):
    (tmp_path / "two").mkdir()
    one, other = journals.forked(tmp_path / "two")
    with closing(Journal.open(one)) as journal:
        journals.go_on(journal)
        journals.write(journal, 1)
    bring(lake, one)
    copy_of(other, tmp_path / "peer.db")
    with pytest.raises(StreamForked, match="two histories of 000001"):
        bring(lake, tmp_path / "peer.db", CopySource)
    assert (held(lake, FIRST), held(lake, SECOND)) == (upto(35), upto(5))
    assert held(lake, FIRST, FORKS) == upto(45, first=21)
    assert bring(lake, tmp_path / "peer.db", CopySource).rows == 0


def test_an_exported_outbox_brings_its_earlier_epochs_too(lake, tmp_path):
    home, _ = forgetful(tmp_path)
    bring(lake, home, FromTheCurrent, earlier=False)
    with closing(JournalReader.open(home)) as reader, (tmp_path / "file").open("wb") as file:
        export(reader, file.write, lambda _: None)
    source = FileSource(tmp_path / "file")
    done = collect(source, lake, STREAM, verify, now_ms=NOW_MS, progress=lambda _: None, earlier=source)
    assert (done.rows, held(lake, FIRST)) == (20, upto(20))
