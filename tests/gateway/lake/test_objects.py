"""A lake in a real object store: collected, verified, made compact and reported as one on a disk."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq
import pytest

from gateway.cli.exits import Exit
from gateway.lake.collector import collect
from gateway.lake.lake import Lake
from spark.errors import LakeDamaged, LakeEmpty, LakeUnreachable
from spark.layout import EVENTS, stream_dir
from spark.mirror import mirror
from spark.objects import lake_path, matching, parquet_of
from spark.sources import event_files
from tests.gateway.outboxes import NOW_MS, STREAM, messages, verify
from tests.objectstore import KEY, address, object_store
from tests.spark.histories import AS_OF_MS, history
from tests.spark.reporting import one, put

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

DIRECTORY = f"{EVENTS}/{stream_dir(STREAM.node, STREAM.epoch)}"


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        for name, value in KEY.items():
            patched.setenv(name, value)
        with object_store(tmp_path_factory.mktemp("store")) as found:
            yield found


def take(outbox, lake):
    return collect(outbox, lake, STREAM, verify, now_ms=NOW_MS, progress=lambda _: None)


def fill(lake, count, batch=10):
    """One file a page."""
    outbox = messages(count, batch)
    pages = outbox.pages
    for upto in range(1, len(pages) + 1):
        outbox.pages = pages[:upto]
        take(outbox, lake)
    return lake


def rows(lake):
    return [
        (path.parts[len(lake.root.parts) :], pq.read_table(parquet_of(path), partitioning=None).to_pylist())
        for path in event_files(lake.root).paths
    ]


def problems(lake):
    return [fault.problem for fault in lake.verify(lambda _: verify).faults]


def test_it_holds_what_one_on_a_disk_holds(port, tmp_path):
    lake, on_disk = Lake(lake_path(address(port, "same"))), Lake(tmp_path)
    with pytest.raises(LakeEmpty):
        event_files(lake.root)
    fill(lake, 45)
    fill(on_disk, 45)
    assert rows(lake) == rows(on_disk)
    assert event_files(lake.root).nodes == (STREAM.node,)
    assert [lake.ends(STREAM.mesh, STREAM.node), lake.streams()] == [
        on_disk.ends(STREAM.mesh, STREAM.node),
        on_disk.streams(),
    ]
    assert problems(lake) == []
    assert take(messages(45), lake).rows == 0
    assert lake.compact((STREAM.node, STREAM.epoch)) == on_disk.compact((STREAM.node, STREAM.epoch))
    assert rows(lake) == rows(on_disk)
    assert len(rows(lake)) == 1
    assert problems(lake) == []


def test_what_was_damaged_is_found(port):
    lake = fill(Lake(lake_path(address(port, "damaged"))), 20)
    first, last = matching(lake.root / DIRECTORY, "*.parquet")
    first.unlink()
    last.put(last.read_bytes()[:100])
    assert len(problems(lake)) == 1
    with pytest.raises(LakeDamaged, match="cannot be read"):
        lake.cursor(STREAM.mesh, STREAM.node)


def test_two_collectors_at_once_spoil_nothing(port):
    root = lake_path(address(port, "twice"))
    ours, theirs = messages(60, 10), messages(60, 15)
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(fill_from, outbox, Lake(root)) for outbox in (ours, theirs)]:
            done.result()
    assert problems(Lake(root)) == []
    seqs = {row["seq"] for _, found in rows(Lake(root)) for row in found}
    assert seqs == set(range(1, 61))


def fill_from(outbox, lake):
    pages = outbox.pages
    for upto in range(1, len(pages) + 1):
        outbox.pages = pages[:upto]
        take(outbox, lake)


def test_a_copy_follows_what_is_there(port, tmp_path):
    lake = fill(Lake(lake_path(address(port, "copied"))), 30)
    fetched = []
    here = mirror(lake.root, tmp_path, lambda *step: fetched.append(step))
    assert rows(Lake(here)) == rows(lake)
    assert len(fetched) == 3
    mirror(lake.root, tmp_path, lambda *step: fetched.append(step))
    assert len(fetched) == 3, "nothing is fetched twice"
    lake.compact((STREAM.node, STREAM.epoch))
    mirror(lake.root, tmp_path, lambda *step: fetched.append(step))
    assert rows(Lake(here)) == rows(lake)
    assert [path.name for path in (here / DIRECTORY).iterdir()] == [event_files(lake.root).paths[0].name]
    other = fill(Lake(lake_path(address(port, "other"))), 10)
    mirror(other.root, tmp_path, lambda *_: None)
    assert not here.exists(), "a copy of another lake takes its place"


def gateway(*arguments):
    command = [sys.executable, "-m", "gateway", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


def test_a_report_tells_of_it_what_it_tells_of_one_on_a_disk(port, tmp_path):
    put(tmp_path / "disk", history([one(), one(accepted_ms=(5,)), one(accepted_ms=(90_000,))]))
    root = lake_path(address(port, "reported"))
    for path in (tmp_path / "disk").rglob("*.parquet"):
        (root / path.relative_to(tmp_path / "disk")).put(path.read_bytes())
    told = []
    for lake in (tmp_path / "disk", address(port, "reported")):
        out = tmp_path / f"out{len(told)}"
        done = gateway("report", "--lake", lake, "--out", out, "--as-of", as_text(AS_OF_MS), "--json")
        assert done.returncode == 0, done.stderr
        assert done.stdout == (out / "incidents.json").read_text(), "the one document that is described"
        told.append(json.loads(done.stdout))
    assert told[0] == told[1]
    assert told[0]["incidents"]


def test_an_empty_one_is_told_by_its_own_name(port, tmp_path):
    done = gateway("report", "--lake", address(port, "nothing"), "--out", tmp_path / "out")
    assert done.returncode == Exit.REFUSED
    assert "s3://lakes/nothing holds no events" in done.stderr
    assert not (tmp_path / "out").exists()


def as_text(ms):
    from outbox.timestamps import rfc3339

    return rfc3339(ms)


def test_who_is_not_let_in_is_told_so(port, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    stranger = Lake(lake_path(address(port, "same") + "&"))
    with pytest.raises(LakeUnreachable, match="lakes/same"):
        stranger.streams()
