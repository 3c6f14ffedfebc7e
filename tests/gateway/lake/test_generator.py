"""The generator against the oracle: what it says it planted is what a slow reader finds."""

from collections import Counter
from hashlib import sha256

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.lake.generator import TRUTH_ABOUT, TRUTH_TABLE, Generated, generate
from outbox.timestamps import parse_rfc3339
from spark.errors import LakeNotEmpty
from spark.rules import IncidentClass
from spark.schema import EventRow
from spark.sources import event_files
from tests.spark import oracle

ACCEPT, PROCESS = 60_000_000, {"message": 300_000_000, "task_create": 120_000_000}


def events(paths):
    """The rows of these files as records."""
    for path in paths:
        table = pq.read_table(path, partitioning=None)
        for place, field in enumerate(table.schema):
            if pa.types.is_timestamp(field.type):
                table = table.set_column(place, field.name, table[field.name].cast(pa.int64()))
        yield from (msgspec.convert(row, EventRow) for row in table.to_pylist())


def truth(lake):
    return {(row["class"], row["subject"]) for row in pq.read_table(lake / TRUTH_TABLE).to_pylist()}


def digest(lake):
    files = sorted(path for path in lake.rglob("*") if path.is_file())
    return sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()


def test_the_oracle_finds_what_was_planted_and_nothing_else(tmp_path):
    seen = []
    made = generate(tmp_path, 12_000, 3, progress=lambda done, total: seen.append((done, total)))
    files = event_files(tmp_path)
    rows = list(events(files.paths))
    assert (made.events, len(seen) > 4) == (len(rows), True)
    lives = oracle.lives(rows, files.nodes)
    as_of = parse_rfc3339(made.as_of) * 1000
    found = oracle.incidents(lives, as_of, ACCEPT, PROCESS) | {
        hit for hit in oracle.stream_incidents(rows, lives) if hit[0] != "fork"
    }
    copies = list(events(path for copies in files.copies for path in copies.paths))
    found |= {hit for hit in oracle.stream_incidents(copies, {}) if hit[0] == "fork"}
    assert {hit[:2] for hit in found} == truth(tmp_path)
    assert made.incidents == dict(sorted(Counter(name for name, _ in truth(tmp_path)).items()))
    assert made.incidents.keys() == set(IncidentClass)
    assert msgspec.json.decode((tmp_path / TRUTH_ABOUT).read_bytes(), type=Generated) == made


def test_the_same_seed_fills_the_same_lake_with_repeated_pages_lost_entries_and_new_epochs(tmp_path):
    for place in ("one", "two"):
        generate(tmp_path / place, 1500, 5, progress=lambda *_: None)
    assert digest(tmp_path / "one") == digest(tmp_path / "two")
    rows = list(events(event_files(tmp_path / "one").paths))
    assert len({(row.source_node_id, row.epoch) for row in rows}) > len({row.source_node_id for row in rows})
    assert any(oracle.missing(rows).values())


def test_made_up_history_does_not_mix_with_events(tmp_path):
    generate(tmp_path, 300, 1, progress=lambda *_: None)
    with pytest.raises(LakeNotEmpty):
        generate(tmp_path, 300, 1, progress=lambda *_: None)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_long_history_takes_no_more_memory_than_a_short_one(tmp_path):
    held = []
    generate(tmp_path, 4_000_000, 1, progress=lambda *_: held.append(pa.total_allocated_bytes()))
    middle = len(held) // 2
    assert max(held[middle:]) < 1.2 * max(held[:middle]) < 1.2 * 2**30
