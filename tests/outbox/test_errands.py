"""What is begun is kept until it is done."""

import gzip
from pathlib import Path

from outbox.journal import Journal
from outbox.records import Errand
from outbox.store import Store

ONE, OTHER, THIRD = Errand("b", "mbp", "1"), Errand("b", "lab"), Errand("a", "mbp", "2")


def test_there_is_one_a_kind_and_subject_until_it_is_dropped(store: Store) -> None:
    store.begin()
    for row in (ONE, OTHER, THIRD):
        store.put_errand(row)
    store.commit()
    assert store.errands() == [THIRD, OTHER, ONE]
    again = Errand(ONE.kind, ONE.subject, "another")
    store.begin()
    store.put_errand(again)
    store.drop_errand(OTHER)
    store.drop_errand(Errand("b", "nobody"))
    assert store.errands() == [THIRD, again]
    store.rollback()
    assert store.errands() == [THIRD, OTHER, ONE]


def test_a_lapse_of_an_earlier_version_is_one(tmp_path: Path) -> None:
    old = Path(__file__).parent / "golden" / "journal-13.db.gz"
    (tmp_path / "journal.db").write_bytes(gzip.decompress(old.read_bytes()))
    journal = Journal.open(tmp_path / "journal.db", wal_bytes=0)
    assert journal.errands() == [Errand("lapse", "mbp/000002-0123456789ab", "000001-0123456789ab/3")]
    journal.close()
