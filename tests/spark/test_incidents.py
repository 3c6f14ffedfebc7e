from spark.incidents import RULES, IncidentClass, Severity
from tests.spark.histories import ACCEPT_MS, AS_OF_MS, START_MS, Script, Turn, history, root_of
from tests.spark.reporting import one, report, table

CASES = [
    ("processed in time", one(accepted_ms=(5,), turns=(Turn(9, "ok", "b"),)), "processed", set()),
    ("never accepted", one(), "emitted", {"never_accepted"}),
    ("not due yet", one(created=AS_OF_MS - ACCEPT_MS), "emitted", set()),
    ("one millisecond overdue", one(created=AS_OF_MS - ACCEPT_MS - 1), "emitted", {"never_accepted"}),
    ("refused by one node, accepted by another",
     one(attempts=2, refused_first=True, accepted_ms=(50,), turns=(Turn(60, "ok", "b"),)),
     "processed", set()),
    ("refused and nothing since", one(refused_first=True), "retry_pending", {"never_accepted"}),
    ("accepted, silent", one(accepted_ms=(5,)), "accepted", {"accepted_not_processed"}),
    ("processed late", one(accepted_ms=(0,), turns=(Turn(300_000, "ok", "b"),)), "processed",
     {"accepted_not_processed"}),
    ("processed at the last millisecond", one(accepted_ms=(0,), turns=(Turn(299_990, "ok", "b"),)),
     "processed", set()),
    ("turn failed", one(accepted_ms=(5,), turns=(Turn(9, "failed", "b"),)), "processed", {"turn_failed"}),
    ("failed here, succeeded there",
     one(accepted_ms=(5,), turns=(Turn(9, "failed", "b"), Turn(20, "ok", "007"))), "processed", set()),
    ("dead letter", one(attempts=3, dead_ms=9000), "dead_letter", {"dead_letter"}),
    ("given up, and then a late answer", one(dead_ms=900, turns=(Turn(950, "ok", "b"),)), "dead_letter",
     {"dead_letter"}),
    ("the receiver's clock is nonsense",
     one(accepted_ms=(5,), turns=(Turn(9, "ok", "b"),), broken_clock=True), "processed", set()),
    ("a forged answer says nothing", one(forged=True), "emitted", {"never_accepted"}),
    ("a reply is done when it is accepted", one(answers=17, accepted_ms=(7,)), "accepted", set()),
    ("on one node", Script(created_ms=START_MS, sender="a", receiver="a", accepted_ms=(0,),
                           turns=(Turn(1, "ok", "a"),)), "processed", set()),
]  # fmt: skip


def test_judges_each_case_as_an_operator_would(spark, tmp_path):
    _, out = report(spark, tmp_path, history([script for _, script, _, _ in CASES]))
    states = {row["rootId"]: row["state"] for row in table(out, "lifecycle")}
    classes = {}
    for row in table(out, "incidents"):
        classes.setdefault(row["rootId"], set()).add(row["class"])
    for number, (name, _, state, expected) in enumerate(CASES):
        assert (states[root_of(number)], classes.get(root_of(number), set())) == (state, expected), name


def test_every_class_has_a_rule_that_looks_at_the_moment_or_at_a_fact():
    assert set(RULES) == set(IncidentClass)
    assert all(rule.severity in Severity and rule.condition for rule in RULES.values())
