"""The report beside DuckDB: the same tables from the same Parquet, each in a process of its own.

Run with ``make bench-spark``. The lake is generated once a size, and kept in ``BENCH_DIR`` when that is set.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.lake.generator import TRUTH_ABOUT, generate

SIZES = [
    pytest.param(1_000_000, "2g", None, id="1M"),
    pytest.param(10_000_000, "2g", 6.5, id="10M"),
    pytest.param(50_000_000, "4g", 3.0, id="50M", marks=pytest.mark.long),
]


def duck_memory() -> str:
    """Three fifths of what is free, so that the peer spills only where it must."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    (free_kib,) = (int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    return f"{free_kib * 6 // 10 // 1024}MiB"


def lake_of(events: int, disk: Path) -> Path:
    lake = Path(os.environ.get("BENCH_DIR", disk)) / f"lake-{events}"
    if not (lake / TRUTH_ABOUT).exists():
        said = 0

        def progress(done: int, total: int) -> None:
            nonlocal said
            if done // 1_000_000 > said:
                said = done // 1_000_000
                say(f"generate: {done:,} of {total:,}")

        generate(lake, events, 1, progress=progress)
    return lake


def say(line: str) -> None:
    """A run takes minutes: each line says when, so that a slow one is told from one that hangs."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def told(*command: object) -> dict:
    """What a process of its own says of itself; its progress and its complaints go to our stderr."""
    say(f"run {' '.join(map(str, command))}")
    done = subprocess.run(
        [sys.executable, *map(str, command)], stdout=subprocess.PIPE, text=True, timeout=7200, check=False
    )
    assert done.returncode == 0, f"{command[1]} ended with {done.returncode} (below zero: a signal)"
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.bench
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize(("events", "heap", "must"), SIZES)
def test_report_beside_duckdb(disk, events, heap, must):
    pytest.importorskip("duckdb", reason="the bench group is not installed")
    lake = lake_of(events, disk)
    memory = duck_memory()
    duck = told("-m", "tests.bench.duck", lake, disk / "duck", memory)
    spark = told("-m", "tests.bench.report_run", lake, disk / "spark", heap)
    assert duck["right"], "DuckDB finds what was planted"
    assert spark["right"], "Spark finds what was planted"
    wall, cpu = spark["tables_s"] / duck["tables_s"], spark["cpu_s"] / duck["cpu_s"]
    print(
        f"\n{events:,} events: DuckDB ({memory}) {duck['tables_s']:.1f} s, {duck['cpu_s']:.1f} of CPU;"
        f" Spark (heap {heap}) {spark['tables_s']:.1f} s, {spark['cpu_s']:.1f} of CPU"
    )
    print(f"  tables: {wall:.1f} times DuckDB (CPU {cpu:.1f} times); must be at most {must or 'any'}")
    print(f"  besides: Spark's start {spark['start_s']:.1f} s, figures and page {spark['page_s']:.1f} s")
