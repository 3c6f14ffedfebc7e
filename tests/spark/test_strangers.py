from spark.strangers import COLUMNS, strangers, unknown_kinds
from tests.spark.histories import EPOCH, START_MS, history
from tests.spark.reporting import frame, one


def test_unknown_kinds_are_counted_and_the_first_is_named(spark, tmp_path):
    rows = history([one(created=START_MS + 5), one(), one(sender="b")])
    table = strangers(frame(spark, tmp_path, rows))
    assert tuple(table.columns) == COLUMNS
    found = {(row.node, row.kind): (row.events, row.position) for row in table.collect()}
    assert found == {
        ("a", "from_the_future"): (2, f"a/{EPOCH}/3"),
        ("b", "from_the_future"): (1, f"b/{EPOCH}/3"),
    }
    subjects = (
        unknown_kinds(table).selectExpr("*", "unix_millis(openedAt) as ms").orderBy("subject").collect()
    )
    assert [(row.subject, row.ms) for row in subjects] == [
        ("a/from_the_future", START_MS),
        ("b/from_the_future", START_MS),
    ]
