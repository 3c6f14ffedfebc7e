"""``gateway report --follow``: starts Spark and follows a lake until it is told to stop."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spark.errors import InvalidMaster, SparkFailed
from spark.figures import told_lines
from spark.job import make_report, spark_errors
from spark.masters import LOCAL, Place, place_of
from spark.objectives import Objective
from spark.objects import LakePath
from spark.session import Setup, spark_session
from spark.sla import DEFAULTS, Threshold, check_thresholds
from spark.sources import event_files
from spark.stream import Following, start
from spark.summary import IncidentLine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Told = tuple[str, IncidentLine]
"""``opened``, ``changed`` or ``withdrawn``, and the incident."""

FAILURES_MAX = 3
"""Reports in a row that may fail while a lake is followed: one may meet a compaction, three do not."""

_PARTITIONS = 2
"""A micro-batch is small; each partition is a file of every version of the state."""

_NO_SETTINGS: Mapping[str, str] = {}


class Page:
    """The whole report of a lake that is followed: made anew seldom, since it reads everything."""

    def __init__(
        self,
        following: Following,
        every_ms: int,
        objectives: Sequence[Objective] | None,
    ) -> None:
        self._following, self._every_ms, self._objectives = following, every_ms, objectives
        self._due_ms = 0
        self._made_of: tuple[LakePath, ...] = ()
        self._stirred = False
        self._failures = 0

    def stir(self) -> None:
        """Some incident opened, changed or closed."""
        self._stirred = True

    def renew(self, spark: "SparkSession", log: Path) -> None:
        """Make it if it is due and there is anything new. Raises SparkFailed when it fails again and again.

        Compaction may take a file away while it is read: the next time there is another in its place.
        """
        now_ms = self._following.now_ms()
        if now_ms < self._due_ms:
            return
        files = event_files(self._following.lake)
        self._due_ms = now_ms + self._every_ms
        if files.paths == self._made_of and not self._stirred:
            return
        self._stirred = False
        try:
            with spark_errors(log):
                make_report(
                    spark,
                    files,
                    self._following.out,
                    now_ms,
                    progress=lambda *_: None,
                    thresholds=self._following.thresholds,
                    objectives=self._objectives,
                )
        except SparkFailed:
            self._failures += 1
            if self._failures >= FAILURES_MAX:
                raise
        else:
            self._made_of, self._failures = files.paths, 0
            # From its end: a report that takes long is not followed by the next at once.
            self._due_ms = self._following.now_ms() + self._every_ms


def follow(
    lake: Path,
    out: Path,
    *,
    now_ms: Callable[[], int],
    tell: Callable[[list[Told]], None],
    interval_s: float | None,
    cache: Path,
    thresholds: Mapping[str, Threshold] = DEFAULTS,
    objectives: Sequence[Objective] | None = None,
    refresh_s: float | None = None,
    master: str = LOCAL,
    settings: Mapping[str, str] = _NO_SETTINGS,
) -> None:
    """Call ``tell`` with what is new, batch for batch, until interrupted; without interval until caught up.

    With ``refresh_s`` the whole report is made as well, no more often than that. After a crash the last batch
    may be told again. Raises LakeEmpty, InvalidThreshold, InvalidMaster, SparkMissing, JavaMissing,
    SparkFailed.
    """
    check_thresholds(thresholds)
    if place_of(master) is Place.CONNECT:
        raise InvalidMaster("a stream is not followed over Spark Connect", hint="name a cluster, or local[*]")
    lake, out = lake.absolute(), out.absolute()

    def tell_lines(news: "DataFrame") -> None:
        lines = told_lines(news)
        if page is not None and lines:
            page.stir()
        tell(lines)

    following = Following(lake=lake, out=out, thresholds=thresholds, now_ms=now_ms, tell=tell_lines)
    page = None if refresh_s is None else Page(following, int(refresh_s * 1000), objectives)
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
            # Without interval a query that finds a batch unfinished does that one and no more: so once more,
            # and again for what the last batch asked for.
            for _ in range(3 if interval_s is None else 1):
                query = start(spark, following, interval_s=interval_s)
                try:
                    # In steps of a second, so that an interrupt is heard.
                    while not query.awaitTermination(1):
                        if page is not None and query.lastProgress is not None:
                            page.renew(spark, setup.log)
                finally:
                    query.stop()
            if page is not None:
                page.renew(spark, setup.log)
    finally:
        shutil.rmtree(setup.scratch, ignore_errors=True)
