"""Collects the outboxes of the demo into a lake and runs the report job on it."""

import os
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

import platformdirs

from auth.keyring import Keyring
from gateway.clock import Clock
from gateway.demo.limits import SLA_ACCEPT_MS, SLA_PROCESS_MS
from gateway.fleet.progress import Progress
from gateway.home import Home
from outbox.kinds import Kind
from spark.errors import SparkMissing
from spark.java import find_java
from spark.job import STEPS
from spark.job import run as run_job
from spark.sla import Threshold
from spark.summary import Summary

THRESHOLDS: Mapping[str, Threshold] = {
    Kind.MESSAGE: Threshold(SLA_ACCEPT_MS, SLA_PROCESS_MS),
    Kind.REPLY: Threshold(SLA_ACCEPT_MS),
}
"""What the gateways of the demo promise, and so what the report judges."""


def check_parts() -> None:
    """See before a minute has gone by whether a report can be made. Raises SparkMissing, JavaMissing."""
    for package in ("pyarrow", "pyspark"):
        if find_spec(package) is None:
            raise SparkMissing(f"the report needs {package}, which is not installed")
    find_java(os.environ, _cache())


def collect(homes: Iterable[Home], lake: Path, clock: Clock) -> int:
    """Verify the outboxes into the lake and return how many events it got. Raises as the collector does."""
    from gateway.lake.homes import collect_home
    from gateway.lake.lake import Lake

    events = 0
    for home in homes:
        key = Keyring(home.keys).node_key(clock.entropy).public
        _, collected = collect_home(home, key, Lake(lake), clock.wall_ms())
        events += collected.rows
    return events


def report(lake: Path, out: Path, clock: Clock, progress: Progress) -> Summary:
    """Run the Spark job; its promises are judged as of now. Raises as ``spark.job.run``."""
    progress.begin("Spark report", len(STEPS))

    def tell(what: str, done: int, _total: int) -> None:
        progress.at(done, what)

    return run_job(lake, out, clock.wall_ms(), progress=tell, cache=_cache(), thresholds=THRESHOLDS)


def _cache() -> Path:
    return platformdirs.user_cache_path("gateway-mesh")
