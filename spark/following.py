"""``gateway report --follow``: starts Spark and follows a lake until it is told to stop."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from spark.errors import InvalidMaster
from spark.figures import told_lines
from spark.job import spark_errors
from spark.masters import LOCAL, Place, place_of
from spark.session import Setup, spark_session
from spark.sla import DEFAULTS, Threshold, check_thresholds
from spark.stream import Following, start
from spark.summary import IncidentLine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Told = tuple[str, IncidentLine]
"""``opened``, ``changed`` or ``withdrawn``, and the incident."""

_PARTITIONS = 2
"""A micro-batch is small; each partition is a file of every version of the state."""

_NO_SETTINGS: Mapping[str, str] = {}


def follow(
    lake: Path,
    out: Path,
    *,
    now_ms: Callable[[], int],
    tell: Callable[[list[Told]], None],
    interval_s: float | None,
    cache: Path,
    thresholds: Mapping[str, Threshold] = DEFAULTS,
    master: str = LOCAL,
    settings: Mapping[str, str] = _NO_SETTINGS,
) -> None:
    """Call ``tell`` with what is new, batch for batch, until interrupted; without interval until caught up.

    After a crash the last batch may be told again. Raises LakeEmpty, InvalidThreshold, InvalidMaster,
    SparkMissing, JavaMissing, SparkFailed.
    """
    check_thresholds(thresholds)
    if place_of(master) is Place.CONNECT:
        raise InvalidMaster("a stream is not followed over Spark Connect", hint="name a cluster, or local[*]")
    lake, out = lake.absolute(), out.absolute()

    def tell_lines(news: "DataFrame") -> None:
        tell(told_lines(news))

    following = Following(lake=lake, out=out, thresholds=thresholds, now_ms=now_ms, tell=tell_lines)
    following.place.mkdir(parents=True, exist_ok=True)
    setup = Setup(
        scratch=out / ".spark-follow",
        log=out / "spark-follow.log",
        cache=cache,
        partitions=_PARTITIONS,
        small=True,
        master=master,
        settings=settings,
    )
    try:
        with spark_session(setup) as spark, spark_errors(setup.log):
            # A query that finds a batch unfinished does that one and, without interval, no more: so twice.
            for _ in range(2 if interval_s is None else 1):
                query = start(spark, following, interval_s=interval_s)
                try:
                    while not query.awaitTermination(1):
                        pass  # in steps of a second, so that an interrupt is heard
                finally:
                    query.stop()
    finally:
        shutil.rmtree(setup.scratch, ignore_errors=True)
