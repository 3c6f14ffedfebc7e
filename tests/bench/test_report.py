"""The report beside DuckDB: the same tables from the same Parquet, each in a process of its own.

Run with ``make bench-spark``. The lake is generated once a size, and kept in ``BENCH_DIR`` when that is set.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.lake.generator import TRUTH_ABOUT, generate

SIZES = [
    pytest.param(1_000_000, "2g", None, id="1M"),
    pytest.param(10_000_000, "2g", 6.5, id="10M"),
    pytest.param(50_000_000, "4g", 3.0, id="50M", marks=pytest.mark.long),
]
DUCK = """
import json, sys, time
from pathlib import Path
from tests.bench.duck import make_tables
from outbox.timestamps import parse_rfc3339
from spark.sources import event_files
lake, out = map(Path, sys.argv[1:])
about = json.loads((lake / "truth" / "about.json").read_text())
began, cpu = time.monotonic(), time.process_time()
make_tables(event_files(lake), out, parse_rfc3339(about["asOf"]), "4GB")
import duckdb
found = dict(duckdb.sql(f"select class, count(*) from '{out}/incidents.parquet' group by all").fetchall())
told = {name: count for name, count in about["incidents"].items() if name in found}
took, used = time.monotonic() - began, time.process_time() - cpu
print(json.dumps({"tables_s": took, "cpu_s": used, "right": found == told}))
"""


def lake_of(events: int, disk: Path) -> Path:
    lake = Path(os.environ.get("BENCH_DIR", disk)) / f"lake-{events}"
    if not (lake / TRUTH_ABOUT).exists():
        generate(lake, events, 1, progress=lambda *_: None)
    return lake


def told(*command: object) -> dict:
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, timeout=7200, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.bench
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize(("events", "heap", "must"), SIZES)
def test_report_beside_duckdb(disk, events, heap, must):
    pytest.importorskip("duckdb", reason="the bench group is not installed")
    lake = lake_of(events, disk)
    duck = told("-c", DUCK, lake, disk / "duck")
    spark = told("-m", "tests.bench.report_run", lake, disk / "spark", heap)
    assert duck["right"], "DuckDB finds what was planted"
    assert spark["right"], "Spark finds what was planted"
    wall, cpu = spark["tables_s"] / duck["tables_s"], spark["cpu_s"] / duck["cpu_s"]
    print(
        f"\n{events:,} events, heap {heap}: DuckDB {duck['tables_s']:.1f} s, Spark {spark['tables_s']:.1f} s"
    )
    print(f"  tables: {wall:.1f} times DuckDB (CPU {cpu:.1f} times); must be at most {must or 'any'}")
    print(f"  besides: Spark's start {spark['start_s']:.1f} s, figures and page {spark['page_s']:.1f} s")
