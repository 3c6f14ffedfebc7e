from spark.changes import changes, standing

HITS = "array<struct<class: string, severity: string, closedAt: string, detail: string, state: string>>"
SAME = ("same", "major", None, "d", "s")
OPEN, CLOSED = ("closes", "major", None, None, "s"), ("closes", "major", "t", None, "s")
GOES, NEW = ("goes", "major", None, None, "s"), ("new", "critical", None, None, "s")


def frame(spark, *rows, schema=f"rootId string, found {HITS}, told {HITS}"):
    return spark.createDataFrame(list(rows), schema)


def test_tells_what_opened_what_changed_and_what_never_was(spark):
    lives = frame(
        spark,
        ("one", [SAME, CLOSED, NEW], [SAME, OPEN, GOES]),
        ("quiet", [SAME, OPEN], [SAME, OPEN]),
        ("late", [NEW], []),
    )
    told = changes(lives)
    assert told.columns == ["change", "rootId", "class", "severity", "closedAt", "detail", "state"]
    assert {(row.rootId, row["class"], row.change, row.closedAt) for row in told.collect()} == {
        ("one", "closes", "changed", "t"),
        ("one", "goes", "withdrawn", None),
        ("one", "new", "opened", None),
        ("late", "new", "opened", None),
    }


def test_what_stands_is_the_last_word_about_each(spark):
    all_changes = frame(
        spark,
        ("opened", "a", None, 1), ("changed", "a", "t", 3),
        ("opened", "b", None, 1), ("withdrawn", "b", None, 2),
        ("opened", "c", None, 1), ("withdrawn", "c", None, 2), ("opened", "c", None, 12),
        schema="change string, incidentId string, closedAt string, batch int",
    )  # fmt: skip
    assert {tuple(row) for row in standing(all_changes).collect()} == {("a", "t"), ("c", None)}
