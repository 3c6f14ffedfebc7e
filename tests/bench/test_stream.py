"""How fast a stream follows: micro-batches of 5,000 events, alone and late on a busy day, and catching up."""

import time
from pathlib import Path

import pytest

from spark.layout import EVENTS, stream_dir
from spark.session import Setup, spark_session
from spark.sla import DEFAULTS
from spark.spans import Span
from spark.stream import Following, start
from tests.bench.report_run import jvm_cpu_s
from tests.spark.histories import AS_OF_MS, START_MS, Turn, history
from tests.spark.reporting import one, put_file

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

BATCH_EVENTS, BATCHES, CATCH_UP_EVENTS = 5_000, 6, 300_000
BATCH_S_MAX, RATE_MIN = 2.0, 50_000


LATER_MS = AS_OF_MS + 3_600_000
"""When those messages are over that were caught up with, and put aside if ever."""


def answered(events, created_ms=START_MS):
    """Messages of a two-node mesh, about so many events."""
    return [one(created=created_ms, accepted_ms=(5,), turns=(Turn(10, "ok", "b"),))] * (events // 5)


def add(lake, number, entries):
    for node in sorted({row.source_node_id for row in entries}):
        own = [row for row in entries if row.source_node_id == node]
        span = Span(1 + number * 1_000_000, (number + 1) * 1_000_000)
        put_file(lake / EVENTS / stream_dir(node, own[0].epoch) / span.file_name, own)


def take(spark, lake, out, now_ms=AS_OF_MS):
    following = Following(
        lake=lake, out=out, thresholds=DEFAULTS, now_ms=lambda: now_ms, tell=lambda news: news.collect()
    )
    query = start(spark, following, interval_s=None)
    began = time.perf_counter()
    assert query.awaitTermination(600)
    batches = [progress["batchDuration"] / 1000 for progress in query.recentProgress]
    return time.perf_counter() - began, batches


def test_follows(tmp_path: Path) -> None:
    setup = Setup(
        scratch=tmp_path / "scratch",
        log=tmp_path / "log",
        cache=tmp_path / "cache",
        master="local[2]",
        partitions=2,
        small=True,
    )
    with spark_session(setup) as spark:
        lake, out = tmp_path / "lake", tmp_path / "out"
        batches = []
        for number in range(BATCHES):
            add(lake, number, history(answered(BATCH_EVENTS)))
            batches += take(spark, lake, out)[1][:1]
        lake, out = tmp_path / "much", tmp_path / "caught"
        entries = history(answered(CATCH_UP_EVENTS))
        for number in range(10):
            add(lake, number, entries[number::10])
        seconds, _ = take(spark, lake, out)
        take(spark, lake, out, LATER_MS)
        later = history(answered(CATCH_UP_EVENTS) + answered(BATCH_EVENTS, LATER_MS))[len(entries) :]
        add(lake, 10, later)
        before_s = jvm_cpu_s(spark)
        _, (late_s, *_) = take(spark, lake, out, LATER_MS + 1000)
        late_cpu_s = jvm_cpu_s(spark) - before_s
    print()
    median = sorted(batches)[len(batches) // 2]
    took = f"median {median:.2f} s, the first {batches[0]:.2f} s"
    print(f"micro-batch of {BATCH_EVENTS} events: {took} (must: {BATCH_S_MAX:g} s)")
    day = f"{late_s:.2f} s, {late_cpu_s:.1f} s of processor time"
    print(f"the same after {CATCH_UP_EVENTS:,} events of messages that are over: {day}")
    print(f"catching up: {len(entries) / seconds:,.0f} events/s (≥ {RATE_MIN:,})")
