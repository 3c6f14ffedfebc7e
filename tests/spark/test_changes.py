from spark.changes import changes, standing

COLUMNS = "incidentId string, severity string, closedAt string, detail string, state string"


def frame(spark, *rows, schema=COLUMNS):
    return spark.createDataFrame(list(rows), schema)


def test_tells_what_opened_what_changed_and_what_never_was(spark):
    told = frame(spark, ("same", "major", None, "d", "s"), ("closes", "major", None, None, "s"),
                 ("goes", "major", None, None, "s"))  # fmt: skip
    found = frame(spark, ("same", "major", None, "d", "s"), ("closes", "major", "t", None, "s"),
                  ("new", "critical", None, None, "s"))  # fmt: skip
    rows = changes(found, told).collect()
    assert {(row.incidentId, row.change, row.closedAt) for row in rows} == {
        ("closes", "changed", "t"),
        ("goes", "withdrawn", None),
        ("new", "opened", None),
    }
    assert changes(found, found).count() == 0
    assert {row.change for row in changes(found, found.limit(0)).collect()} == {"opened"}


def test_what_stands_is_the_last_word_about_each(spark):
    all_changes = frame(
        spark,
        ("opened", "a", None, 1), ("changed", "a", "t", 3),
        ("opened", "b", None, 1), ("withdrawn", "b", None, 2),
        ("opened", "c", None, 1), ("withdrawn", "c", None, 2), ("opened", "c", None, 12),
        schema="change string, incidentId string, closedAt string, batch int",
    )  # fmt: skip
    assert {tuple(row) for row in standing(all_changes).collect()} == {("a", "t"), ("c", None)}
