from spark.deliveries import deliveries
from spark.figures import FARED, WIDTHS_MS, bucket_width
from spark.limits import BUCKETS_MAX
from tests.spark.histories import Turn, history
from tests.spark.reporting import THRESHOLDS, one, told


def test_slices_of_time_are_usual_ones_and_few():
    assert bucket_width(0) == 1000
    assert list(WIDTHS_MS) == sorted(WIDTHS_MS)
    for span_ms in (25_000, 60_001, 3_600_000, 86_400_000, 365 * 86_400_000):
        width = bucket_width(span_ms)
        assert width in WIDTHS_MS
        assert span_ms / width <= BUCKETS_MAX


FATES = [
    (one(accepted_ms=(1,)), "waiting"),
    (one(), "waiting"),
    (one(answers=99, accepted_ms=(1,)), "done"),
    (one(turns=(Turn(1, "ok", "b"),)), "done"),
    (one(turns=(Turn(1, "failed", "b"),)), "failed"),
    (one(dead_ms=5), "failed"),
]


def test_a_message_fares_in_one_of_three_ways(spark, tmp_path):
    rows = history([script for script, _ in FATES])
    lives = deliveries(told(spark, tmp_path, rows), THRESHOLDS)
    fared = lives.selectExpr("rootId", f"{FARED} as fared").orderBy("rootId").collect()
    assert [row.fared for row in fared] == [fate for _, fate in FATES]
