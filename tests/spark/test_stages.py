import pytest

from spark.events import Role
from spark.stages import Times, number_text

LIFE = {
    "isKnown": "true", "createdAt": "timestamp_millis(500)", "kind": "'message'", "state": "'processed'",
    "processDueAt": "null", "taskState": "null", "subject": "'r'", "rootId": "'r'", "toNode": "'b'",
    "lastMs": "300L", "fromNode": "'a'",
    "halves": "array(named_struct('facts', 0L, 'buriedByFirst', 'x', 'buriedByLast', 'x'))",
}  # fmt: skip


def group(*sides, **more):
    """The row of node b of a message to several, with a side for each: its roles, and who buried it there."""
    halves = ", ".join(
        f"named_struct('facts', {sum(1 << role for role in roles)}L,"
        f" 'buriedByFirst', {by}, 'buriedByLast', {by})"
        for roles, by in sides
    )
    return {"subject": "'r@b'", "halves": f"array({halves})"} | more


DONE = ((Role.ADDRESSED, Role.ACCEPTED, Role.PROCESSED), "null")
REPLIED = ((Role.ADDRESSED, Role.REPLIED), "null")
BURIED = ((Role.ADDRESSED, Role.BURIED), "'a'")
CLAIMED = ((Role.ADDRESSED, Role.ACCEPTED, Role.BURIED), "'c'")
HOME = ((Role.ROOT,), "null")
CASES = [
    ({}, 600, "over"),
    ({}, None, "over"),
    ({}, 850, "open"),
    ({"lastMs": "801L"}, 600, "open"),
    ({"lastMs": "100L"}, 600, "gone"),
    ({"lastMs": "100L", "state": "'emitted'"}, 600, "open"),
    ({"lastMs": "100L", "state": "'accepted'", "processDueAt": "now()"}, 600, "open"),
    ({"lastMs": "100L", "taskState": "'working'"}, 600, "open"),
    (group(HOME, DONE, REPLIED, BURIED), 600, "over"),
    (group(HOME, DONE, ((Role.ADDRESSED, Role.ACCEPTED), "null")), 600, "open"),
    (group(HOME, DONE, CLAIMED), 600, "open"),
    (group(HOME, DONE, taskState="'completed'"), 600, "open"),
    (group(HOME, DONE, lastMs="801L"), 600, "open"),
    ({"kind": "null"}, 600, "open"),
    ({"isKnown": "false"}, 600, "asked"),
    ({"isKnown": "false"}, None, "over"),
    ({"isKnown": "false", "createdAt": "timestamp_millis(601)"}, 600, "over"),
    ({"isKnown": "false", "createdAt": "null", "kind": "null"}, 600, "asked"),
]


def times(aside_ms):
    return Times(as_of_ms=1000, gone_ms=200, over_ms=800, aside_ms=aside_ms, asked_ms=aside_ms)


def test_of_each_life_it_is_known_what_becomes_of_it(spark):
    for aside_ms in {aside_ms for _, aside_ms, _ in CASES}:
        lives = [life for life, asked, _ in CASES if asked == aside_ms]
        rows = (", ".join(f"{value} as {name}" for name, value in (LIFE | life).items()) for life in lives)
        frame = spark.sql(" union all ".join(f"select {row}" for row in rows))
        found = [row.stage for row in frame.selectExpr(f"{times(aside_ms).stage} as stage").collect()]
        assert found == [stage for _, asked, stage in CASES if asked == aside_ms]


@pytest.mark.parametrize(("aside_ms", "puts_aside"), [(None, True), (800, True), (801, False)])
def test_messages_are_put_aside_at_once_and_then_from_time_to_time(aside_ms, puts_aside):
    assert times(aside_ms).puts_aside == puts_aside


def test_a_number_is_text():
    assert number_text(-7) == "cast('-7' as bigint)"
