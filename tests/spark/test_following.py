"""The page of a lake that is followed: made when it is due and there is something new."""

import json

import pytest

from spark.errors import SparkFailed
from spark.following import FAILURES_MAX, Page
from spark.layout import EVENTS
from spark.stream import Following
from tests.spark.histories import AS_OF_MS, Turn, history
from tests.spark.reporting import THRESHOLDS, one, put

EVERY_MS = 60_000


class Clock:
    now_ms = AS_OF_MS

    def __call__(self):
        self.now_ms += EVERY_MS
        return self.now_ms


@pytest.fixture
def followed(tmp_path):
    put(tmp_path / "lake", history([one(), one(accepted_ms=(5,), turns=(Turn(9, "ok", "b"),))]))
    (tmp_path / "out").mkdir()
    lake, out = tmp_path / "lake", tmp_path / "out"
    return Following(lake=lake, out=out, thresholds=THRESHOLDS, now_ms=Clock(), tell=lambda _: None)


def made(followed):
    return (followed.out / "report.html").stat().st_mtime_ns


def test_the_report_is_made_when_it_is_due_and_something_is_new(spark, followed, tmp_path):
    page = Page(followed, EVERY_MS + EVERY_MS // 2, None)  # each look at the clock takes EVERY_MS
    page.renew(spark, tmp_path / "log")
    found = json.loads((followed.out / "incidents.json").read_bytes())
    assert "never_accepted" in {line["class"] for line in found["incidents"]}
    first = made(followed)
    page.stir()
    page.renew(spark, tmp_path / "log")
    assert made(followed) == first, "it is not due"
    page.renew(spark, tmp_path / "log")
    second = made(followed)
    assert second > first
    page.renew(spark, tmp_path / "log")
    page.renew(spark, tmp_path / "log")
    assert made(followed) == second, "nothing is new"


def test_one_failure_is_forgiven_and_several_in_a_row_are_not(spark, followed, tmp_path):
    for path in (followed.lake / EVENTS).rglob("*.parquet"):
        path.write_bytes(b"no parquet")
    page = Page(followed, EVERY_MS // 2, None)
    for _ in range(FAILURES_MAX - 1):
        page.stir()
        page.renew(spark, tmp_path / "log")
    page.stir()
    with pytest.raises(SparkFailed):
        page.renew(spark, tmp_path / "log")
