"""Killed at each step of collecting and of compacting: no row is lost, none is there twice."""

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.lake.lake import Lake
from spark.layout import EVENTS, QUARANTINE, stream_dir
from tests.gateway.lake.dying import bring, compact
from tests.gateway.lake.test_collector import rows
from tests.gateway.outboxes import STREAM, verify

COUNTS = [35, pytest.param(315, marks=[pytest.mark.long, pytest.mark.timeout(600)])]


def die(work: str, root: Path, count: int) -> int:
    """How many steps the work took; at each of them it died once."""
    command = [sys.executable, "-m", "tests.gateway.lake.dying", work, str(root), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=Path.cwd(), check=True)
    steps, status = map(int, done.stdout.split())
    assert status == 0, done.stderr
    return steps


def seqs(lake: Lake, table: str = EVENTS) -> list[int]:
    return [row["seq"] for row in rows(lake, table)]


@pytest.mark.parametrize("count", COUNTS)
def test_killed_at_any_step_of_collecting_it_repeats_and_changes_nothing(tmp_path, count):
    steps = die("collect", tmp_path, count)
    assert steps > count
    for step in range(1, steps + 1):
        lake = Lake(tmp_path / str(step))
        held = seqs(lake)
        assert held == list(range(1, len(held) + 1)), step
        bring(lake.root, count)
        assert seqs(lake) == list(range(1, count + 1)), step
        assert seqs(lake, QUARANTINE) == [2, 14], step
        assert lake.verify(lambda _: verify).faults == (), step
        assert not list(lake.root.rglob("*.tmp")) or step < steps


@pytest.mark.parametrize("count", COUNTS)
def test_killed_at_any_step_of_compacting_nobody_reads_anything_twice_or_not_at_all(tmp_path, count):
    template, everything = Lake(tmp_path / "template"), list(range(1, count + 1))
    bring(template.root, count)
    before = template.cursor(STREAM.mesh, STREAM.node)
    steps = die("compact", tmp_path, count)
    assert steps > count // 2
    for step in range(1, steps + 1):
        lake = Lake(tmp_path / str(step))
        assert seqs(lake) == everything, step
        assert lake.cursor(STREAM.mesh, STREAM.node) == before, step
        compact(lake.root, count)
        assert seqs(lake) == everything, step
        assert lake.verify(lambda _: verify).faults == (), step
        directory = lake.root / EVENTS / stream_dir(STREAM.node, STREAM.epoch)
        names = {f"seq-{first:012}-{min(first + 19, count):012}" for first in range(1, count, 20)}
        assert {path.stem for path in directory.glob("*.parquet")} == names, step
