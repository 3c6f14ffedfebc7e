"""Collects the outboxes of a run into a lake and runs the report job on it."""

import os
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

import platformdirs

from auth.keyring import Keyring
from gateway.clock import Clock
from gateway.home import Home
from outbox.kinds import Kind
from spark.errors import SparkMissing
from spark.java import find_java
from spark.job import run as run_job
from spark.sla import Threshold
from spark.summary import Summary

Follow = Callable[[int, str], None]
"""Is told how many of ``STEPS`` are done, and the step at hand."""


def promises(accept_ms: int, process_ms: int) -> Mapping[str, Threshold]:
    """What gateways with these settings promise, and so what their report judges."""
    return {Kind.MESSAGE: Threshold(accept_ms, process_ms), Kind.REPLY: Threshold(accept_ms)}


def check_parts() -> None:
    """See before a minute has gone by whether a report can be made. Raises SparkMissing, JavaMissing."""
    for package in ("pyarrow", "pyspark"):
        if find_spec(package) is None:
            raise SparkMissing(f"the report needs {package}, which is not installed")
    find_java(os.environ, _cache())


def collect(homes: Iterable[Home], lake: Path, clock: Clock) -> int:
    """Verify the outboxes into the lake, with the proofs of forks; how many events it got.

    Raises as the collector does.
    """
    from gateway.lake.homes import collect_home
    from gateway.lake.lake import Lake
    from gateway.lake.proofs import home_proofs, keep_proofs

    events = 0
    for home in homes:
        key = Keyring(home.keys).node_key(clock.entropy).public
        _, collected = collect_home(home, key, Lake(lake), clock.wall_ms())
        keep_proofs(Lake(lake), home_proofs(home, clock))
        events += collected.rows
    return events


def report(
    lake: Path, out: Path, clock: Clock, thresholds: Mapping[str, Threshold], follow: Follow
) -> Summary:
    """Run the Spark job; its promises are judged as of now. Raises as ``spark.job.run``."""

    def tell(what: str, done: int, _total: int) -> None:
        follow(done, what)

    return run_job(lake, out, clock.wall_ms(), progress=tell, cache=_cache(), thresholds=thresholds)


def _cache() -> Path:
    return platformdirs.user_cache_path("gateway-mesh")
