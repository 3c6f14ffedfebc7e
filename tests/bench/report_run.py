"""``python -m tests.bench.report_run LAKE OUT HEAP``: a report in its own JVM, and what it took, as JSON."""

import json
import os
import sys
import time
from pathlib import Path

from outbox.timestamps import parse_rfc3339
from spark.job import make_report, setup_for
from spark.session import spark_session
from spark.sla import DEFAULTS
from spark.sources import event_files


def jvm_cpu_s(spark) -> float:
    pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(lake: Path, out: Path, heap: str) -> None:
    about = json.loads((lake / "truth" / "about.json").read_text())
    files = event_files(lake)
    out.mkdir(parents=True, exist_ok=True)
    cache = Path("~/.cache/gateway-mesh").expanduser()
    setup = setup_for(files, out, cache=cache, settings={"spark.driver.memory": heap})
    steps: list[tuple[str, float]] = []
    started = time.monotonic()

    def step(what: str, *_: int) -> None:
        steps.append((what, time.monotonic()))
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {what}\n")

    with spark_session(setup) as spark:
        begun = time.monotonic()
        summary = make_report(
            spark,
            files,
            out,
            parse_rfc3339(about["asOf"]),
            progress=step,
            thresholds=DEFAULTS,
        )
        ended, cpu_s = time.monotonic(), jvm_cpu_s(spark)
    at = dict(steps)
    found = {line.name: line.incidents for line in summary.classes}
    told = {
        "start_s": begun - started,
        "tables_s": at["figures"] - begun,
        "page_s": ended - at["figures"],
        "cpu_s": cpu_s,
        "right": found == about["incidents"],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
