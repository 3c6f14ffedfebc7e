from spark.events import Role
from spark.sides import GATHERED, apart, merged, said, sides
from tests.spark.histories import Task, Turn, history
from tests.spark.reporting import one, told

STORY = [
    one(attempts=2, refusals_ms=(5,), accepted_ms=(9, 7), turns=(Turn(20, "failed", "b"),), dead_ms=99),
    one(accepted_ms=(3,), task=Task(accepted_ms=5, eta_ms=50, updates_ms=(9,), end="task_failed", end_ms=60)),
    one(answers=0, accepted_ms=(3,), broken_clock=True),
]


def test_only_aggregates_that_repetition_cannot_change():
    assert {gathered.how for gathered in GATHERED.values()} == {"min", "max", "bit_or"}


def test_one_row_for_a_root_and_a_node(spark, tmp_path):
    found = sides(told(spark, tmp_path, history(STORY[:1]))).orderBy("node").collect()
    home, receiver = found
    assert (home.node, home.facts) == (
        "a",
        1 << Role.SENT | 1 << Role.REFUSED | 1 << Role.DEAD,
    )
    assert (home.reason, home.refusal, home.acceptedAt) == ("expired", "not_owner", None)
    spoken = 1 << Role.ACCEPTED | 1 << Role.PROCESSED
    assert receiver.facts == 1 << Role.SENT | spoken | 1 << Role.BURIED
    assert (receiver.buriedByFirst, receiver.buriedByLast) == ("a", "a")
    assert (receiver.root.fromNode, receiver.root.attempt) == ("a", 2)
    assert (receiver.outcome, receiver.error) == ("failed", "boom")


def test_what_was_gathered_apart_is_gathered_together(spark, tmp_path):
    from pyspark.testing import assertDataFrameEqual

    whole = history(STORY)
    expected = sides(told(spark, tmp_path / "whole", whole))
    for cut in (1, len(whole) // 2):
        early = apart(told(spark, tmp_path / f"{cut}a", whole[:cut]))
        late = sides(told(spark, tmp_path / f"{cut}b", whole[cut - 1 :]))
        assertDataFrameEqual(merged(early.unionByName(late).unionByName(early)), expected)


def test_facts_are_asked_for_by_role(spark):
    facts = str(1 << Role.ACCEPTED)
    row = spark.range(1).selectExpr(
        f"{said(Role.ACCEPTED, facts=facts)} as yes", f"{said(Role.DEAD, facts=facts)} as no"
    )
    assert [(r.yes, r.no) for r in row.collect()] == [(True, False)]
