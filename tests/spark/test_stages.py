import pytest

from spark.stages import Times, number_text

LIFE = {
    "isKnown": "true", "createdAt": "timestamp_millis(500)", "kind": "'message'", "state": "'processed'",
    "processDueAt": "null", "taskState": "null", "subject": "'r'", "rootId": "'r'", "toNode": "'b'",
    "lastMs": "300L",
}  # fmt: skip
CASES = [
    ({}, 600, "over"),
    ({}, None, "over"),
    ({}, 850, "open"),
    ({"lastMs": "801L"}, 600, "open"),
    ({"lastMs": "100L"}, 600, "gone"),
    ({"lastMs": "100L", "state": "'emitted'"}, 600, "open"),
    ({"lastMs": "100L", "state": "'accepted'", "processDueAt": "now()"}, 600, "open"),
    ({"lastMs": "100L", "taskState": "'working'"}, 600, "open"),
    ({"subject": "'r@b'"}, 600, "open"),
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
