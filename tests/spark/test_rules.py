import sqlite3

from outbox.records import DeliveryState
from spark.rules import RULES, STREAM_RULES, IncidentClass, Severity

COLUMNS = {
    "state": "dead_letter", "taskState": "working", "acceptDueAt": 5, "processDueAt": 5, "progressDueAt": 5,
    "completeDueAt": 5, "acceptedAt": 6, "doneAt": 6, "finishedAt": None, "outcome": "ok", "isAnswered": True,
    "errorClass": None, "misroutedTwice": False, "otherEngagedNode": None, "hops": 16,
}  # fmt: skip


def broken(as_of, **columns):
    """The classes that another engine than Spark finds by the same text."""
    values = COLUMNS | columns
    asked = ", ".join(f"({rule.condition.format(as_of=as_of)})" for rule in RULES.values())
    row = ", ".join(f"? as {name}" for name in values)
    with sqlite3.connect(":memory:") as database:
        hits = database.execute(f"select {asked} from (select {row})", tuple(values.values())).fetchone()
    database.close()
    return {name for name, hit in zip(RULES, hits, strict=True) if hit}


def test_every_class_has_one_rule():
    assert RULES.keys().isdisjoint(STREAM_RULES)
    assert {*RULES, *STREAM_RULES} == set(IncidentClass)
    assert all(rule.severity in Severity for rule in RULES.values())


def test_the_conditions_are_text_that_any_sql_engine_understands():
    assert broken(9) == {"dead_letter", "answered_after_dead_letter", "late_ack", "loop"}
    calm = {"hops": 0, "acceptedAt": 4, "doneAt": 4, "isAnswered": False, "taskState": None}
    assert broken(9, state="accepted", **calm) == {"accepted_not_processed"}
    assert broken(5, state="accepted", **calm) == set()
    assert broken(9, state="emitted", **calm) == {"never_accepted"}
    assert broken(9, state="replied", **calm | {"taskState": "working"}) == {"eta_breach", "progress_breach"}


def test_each_state_of_a_rule_is_one_that_deliveries_have():
    text = " ".join(rule.condition for rule in RULES.values())
    named = {state for state in DeliveryState if f"'{state}'" in text}
    assert named == {"emitted", "retry_pending", "accepted", "dead_letter"}
