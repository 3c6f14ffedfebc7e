import re

import msgspec

from outbox.records import DeliveryState
from spark.deliveries import COLUMNS, LATENCIES, STATES, deliveries
from spark.job import gathering
from tests.spark.histories import START_MS, Turn, history, root_of
from tests.spark.reporting import THRESHOLDS, micros, one, told


def test_every_state_of_a_delivery_is_told_and_the_last_always_holds():
    of_one_node = {DeliveryState.SUPERSEDED}  # an event goes by the node that took it over
    assert {state for state, _ in STATES} == set(DeliveryState) - of_one_node
    assert STATES[-1] == (DeliveryState.EMITTED, "true")


def test_one_row_with_times_latencies_place_and_route(spark, tmp_path):
    rows = history([one(attempts=3, accepted_ms=(40, 90), turns=(Turn(100, "ok", "b"),)), one(answers=0)])
    lives = deliveries(told(spark, tmp_path, rows), THRESHOLDS)
    assert tuple(lives.columns) == COLUMNS
    life = lives.where(f"rootId = '{root_of(0)}'").collect()[0]
    assert {name: life[name] for name in LATENCIES} == {
        "acceptMs": 40, "queueMs": 60, "turnMs": 10, "processMs": 110, "replyMs": 0,
    }  # fmt: skip
    assert (life.attempts, life.deliveries, life.fromNode, life.toNode, life.toNodes) == (3, 1, "a", "b", "b")
    assert life.position == "a/000001-000000000000/1"
    reply = lives.where("kind = 'reply'").collect()[0]
    assert (reply.parentId, reply.state, reply.processDueAt, reply.toNode) == (
        root_of(0),
        "emitted",
        None,
        "b",
    )
    due = lives.where("kind = 'reply'").selectExpr("unix_millis(acceptDueAt) as ms").collect()[0].ms
    assert due == START_MS + 60_000
    assert micros(None) is None


def test_an_event_to_several_is_a_delivery_for_each_node_that_none_of_the_others_can_answer_for(
    spark, tmp_path
):
    turns = (Turn(100, "ok", "b"), Turn(200, "failed", "a"))
    rows = history([one(receiver="b,a,007", accepted_ms=(40,), turns=turns, dead_ms=900)])
    lives = deliveries(told(spark, tmp_path, rows), THRESHOLDS).collect()
    root = root_of(0)
    found = {life.subject: (life.toNode, life.state, life.outcome, life.acceptMs) for life in lives}
    assert found == {
        f"{root}@b": ("b", "processed", "ok", 40),
        f"{root}@a": ("a", "processed", "failed", None),
        f"{root}@007": ("007", "dead_letter", None, None),
    }
    assert {life.rootId for life in lives} == {root}
    assert all(life.otherEngagedNode is None and life.toAgent is None for life in lives)


def test_a_claim_of_a_stranger_that_one_of_several_was_given_up_is_no_dead_letter(spark, tmp_path):
    rows = history([one(receiver="b,007", dead_ms=900, dead_by="b")])
    lives = deliveries(told(spark, tmp_path, rows), THRESHOLDS).collect()
    assert {life.toNode: (life.state, life.deadAt, life.reason) for life in lives} == {
        "b": ("emitted", None, None), "007": ("emitted", None, None),
    }  # fmt: skip


def test_a_dead_letter_counts_from_the_sender_whoever_else_claims_one(spark, tmp_path):
    rows = history([one(dead_ms=900)])
    (letter,) = (row for row in rows if row.kind == "dead_letter")
    claims = [
        msgspec.structs.replace(letter, source_node_id=node, seq=90, reason=f"says {node}")
        for node in ("007", "b")  # one before and one after the sender's name
    ]
    others = [row for row in rows if row is not letter]
    for place, told_of, expected in (
        ("all", [*rows, *claims], ("dead_letter", "expired")),
        ("claims", [*others, *claims], ("emitted", None)),
    ):
        (life,) = deliveries(told(spark, tmp_path / place, told_of), THRESHOLDS).collect()
        assert (life.state, life.reason) == expected


def test_answers_to_what_is_not_in_the_lake_have_no_row(spark, tmp_path):
    answers = [row for row in history([one(accepted_ms=(5,), dead_ms=9)]) if row.kind != "message"]
    assert deliveries(told(spark, tmp_path, answers), THRESHOLDS).collect() == []


def test_the_data_is_exchanged_once_and_neither_joined_nor_windowed(spark, tmp_path):
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    try:
        lives = deliveries(told(spark, tmp_path, history([one()])), THRESHOLDS)
        with gathering(spark):
            plan = lives._jdf.queryExecution().executedPlan().toString()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "1")
    assert plan.count("Exchange hashpartitioning(rootHash") == plan.count("Exchange") == 1
    assert not re.search("Join|Window|Deduplicate", plan)
    assert plan.count("Sort [") == 1, "the second gathering finds the rows in the order of the first"
