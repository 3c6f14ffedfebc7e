from spark.changes import TOLD, changes, standing

FIELDS = ("class", *TOLD)
HITS = f"array<struct<{', '.join(f'{name}: string' for name in FIELDS)}>>"


def hit(name, severity="major", opened_at="o", closed_at=None, detail=None):
    return (name, severity, opened_at, closed_at, detail, "s")


SAME, GOES, NEW = hit("same", detail="d"), hit("goes"), hit("new", "critical")
OPEN, CLOSED = hit("closes"), hit("closes", closed_at="t")
LATE, EARLY = hit("begins", opened_at="9"), hit("begins", opened_at="1")


def frame(spark, *rows, schema=f"subject string, found {HITS}, told {HITS}, toldOf string"):
    return spark.createDataFrame(list(rows), schema)


def test_tells_what_opened_what_changed_and_what_never_was(spark):
    lives = frame(
        spark,
        ("one", [SAME, CLOSED, NEW], [SAME, OPEN, GOES], "one"),
        ("quiet", [SAME, OPEN], [SAME, OPEN], "quiet"),
        ("late", [NEW], [], None),
        ("earlier", [EARLY], [LATE], "earlier"),  # the attempt before the first that was known came
    )
    told = changes(lives)
    assert told.columns == ["change", "subject", *FIELDS]
    assert {
        (row.subject, row["class"], row.change, row.openedAt, row.closedAt) for row in told.collect()
    } == {
        ("one", "closes", "changed", "o", "t"),
        ("one", "goes", "withdrawn", "o", None),
        ("one", "new", "opened", "o", None),
        ("late", "new", "opened", "o", None),
        ("earlier", "begins", "changed", "1", None),
    }


def test_what_was_told_of_a_message_that_went_to_several_is_withdrawn_of_the_whole_and_opened_of_each(spark):
    lives = frame(spark, ("one@b", [SAME], [SAME], "one"), ("one@c", [], [SAME], "one"))
    assert {(row.subject, row["class"], row.change) for row in changes(lives).collect()} == {
        ("one", "same", "withdrawn"),
        ("one@b", "same", "opened"),
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
