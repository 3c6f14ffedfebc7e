"""An outbox that travels as a file is collected as if it were read at home, and no file can lie."""

import json
from contextlib import closing

import msgspec
import pytest

from gateway.lake.collector import collect
from gateway.lake.exported import FileSource, export
from gateway.lake.lake import Lake
from outbox.chain import Page, extend, genesis, sign_checkpoint
from outbox.errors import BadFrame, BrokenChain
from outbox.ids import Epoch, NodeId
from outbox.reader import JournalReader
from outbox.records import Identity
from spark.sources import event_files
from tests.gateway.lake import journals
from tests.gateway.lake.journals import SECOND
from tests.gateway.outboxes import KEY, NOW_MS, STREAM, messages, verify


def write(journal_path, file):
    with closing(JournalReader.open(journal_path)) as reader, file.open("wb") as out:
        export(reader, out.write, lambda _: None)


def bring(file, lake):
    return collect(FileSource(file), lake, STREAM, verify, now_ms=NOW_MS, progress=lambda _: None)


def files(lake):
    return {path.relative_to(lake.root): path.read_bytes() for path in event_files(lake.root).paths}


def test_all_epochs_come_and_a_later_file_adds_what_is_new(tmp_path):
    exported, file = Lake(tmp_path / "exported"), tmp_path / "outbox.ndjson"
    with closing(journals.make(tmp_path / "j")) as journal:
        journals.write(journal, 6)
        journals.forget(journal, 10)
        write(tmp_path / "j", file)
        assert bring(file, exported).rows == 20
        journals.go_on(journal)
        journals.write(journal, 2)
        write(tmp_path / "j", file)
        assert (bring(file, exported).rows, bring(file, exported).rows) == (10, 0)
    assert exported.cursor(STREAM.mesh, STREAM.node).epoch == SECOND
    assert [found.places for found in event_files(exported.root).forgotten] == [((1, 10),)]
    home = Lake(tmp_path / "home")
    assert journals.collect_own(tmp_path / "j", home).rows == 30
    assert files(exported).keys() == files(home).keys()


@pytest.mark.parametrize("field", ["node", "epoch"])
def test_names_of_an_exported_outbox_lead_nowhere_whoever_has_signed_them(tmp_path, field):
    file, away = tmp_path / "outbox.ndjson", "000001-/../../../../away"
    with closing(journals.make(tmp_path / "j")) as journal:
        journals.write(journal, 2)
    write(tmp_path / "j", file)
    first = json.loads(file.read_bytes().splitlines()[0])
    hostile = Identity(STREAM.mesh, NodeId(away) if field == "node" else STREAM.node, Epoch(away))
    entries = messages(10).pages[0].entries
    head = extend(genesis(hostile.mesh, hostile.node, hostile.epoch), entries)
    signed = Page(hostile.epoch, entries, sign_checkpoint(hostile.mesh, hostile.node, head, KEY.sign))
    first["node"] = hostile.node
    lines = (json.dumps(first).encode(), msgspec.json.encode(signed))
    file.write_bytes(b"\n".join(lines))
    with pytest.raises(BadFrame, match="names what it may not"):
        bring(file, Lake(tmp_path / "lake"))
    assert not list(tmp_path.rglob("*.parquet"))


def test_an_altered_file_is_refused_and_what_is_no_outbox_as_well(tmp_path):
    file = tmp_path / "outbox.ndjson"
    with closing(journals.make(tmp_path / "j")) as journal:
        journals.write(journal, 2)
    write(tmp_path / "j", file)
    first, page, *_ = file.read_bytes().splitlines()
    altered = json.loads(page)
    altered["entries"][3]["body"] = altered["entries"][2]["body"]
    file.write_bytes(first + b"\n" + json.dumps(altered).encode())
    with pytest.raises(BrokenChain):
        bring(file, Lake(tmp_path / "lake"))
    for junk in (b"", b"{}", b"[1]", first.replace(b'"format":1', b'"format":2')):
        file.write_bytes(junk)
        with pytest.raises(BadFrame):
            bring(file, Lake(tmp_path / "lake"))
