from spark.deliveries import deliveries
from spark.skew import COLUMNS, clock_skews, skew
from tests.spark.histories import START_MS, history, root_of
from tests.spark.reporting import THRESHOLDS, one, told


def test_the_worst_ack_of_each_pair_says_how_far_a_clock_is_behind(spark, tmp_path):
    rows = history([
        one(accepted_ms=(5,)), one(accepted_ms=(-1_001,)), one(created=START_MS + 9, accepted_ms=(-3_000,)),
        one(sender="b", receiver="a", accepted_ms=(-1_000,)),
        one(sender="007", receiver="007", accepted_ms=(-9_999,)),
        one(sender="007", accepted_ms=(-9_999,), broken_clock=True),
    ])  # fmt: skip
    table = skew(deliveries(told(spark, tmp_path, rows), THRESHOLDS))
    assert tuple(table.columns) == COLUMNS
    found = {(row.fromNode, row.toNode): (row.acks, row.leastAcceptMs) for row in table.collect()}
    assert found == {("a", "b"): (3, -3_000), ("b", "a"): (1, -1_000)}
    (subject,) = clock_skews(table).selectExpr("*", "unix_millis(openedAt) as ms").collect()
    worst = next(row for row in rows if row.event_id == root_of(2))
    assert (subject.subject, subject.ms) == ("a>b", START_MS)
    assert subject.evidence == [f"a/{worst.epoch}/{worst.seq}"]
