import pytest

from spark.rules import RULES, RULES_VERSION, Severity
from tests.spark.histories import (
    ACCEPT_MS,
    AS_OF_MS,
    EPOCH,
    START_MS,
    Script,
    Task,
    Turn,
    history,
    root_of,
)
from tests.spark.reporting import one, report, table

HOUR = 3_600_000


def task(within=None, **more):
    return Task(within_ms=within, **more)


CASES = [
    ("processed in time", one(accepted_ms=(5,), turns=(Turn(9, "ok", "b"),)), "processed", set()),
    ("never accepted", one(), "emitted", {"never_accepted"}),
    ("not due yet", one(created=AS_OF_MS - ACCEPT_MS), "emitted", set()),
    ("one millisecond overdue", one(created=AS_OF_MS - ACCEPT_MS - 1), "emitted", {"never_accepted"}),
    ("accepted a millisecond late", one(accepted_ms=(ACCEPT_MS + 1,),
     turns=(Turn(ACCEPT_MS + 9, "ok", "b"),)), "processed", {"late_ack"}),
    ("refused by one node, accepted by another",
     one(attempts=2, refusals_ms=(5,), accepted_ms=(50,), turns=(Turn(60, "ok", "b"),)),
     "processed", set()),
    ("refused twice by who is not its owner",
     one(attempts=3, refusals_ms=(5, 6), accepted_ms=(50,), turns=(Turn(60, "ok", "b"),)),
     "processed", {"routing_miss_repeated"}),
    ("refused and nothing since", one(attempts=2, refusals_ms=(5,)), "retry_pending", {"never_accepted"}),
    ("refused by a node that was never asked", one(refusals_ms=(5,)), "emitted", {"never_accepted"}),
    ("accepted, silent", one(accepted_ms=(5,)), "accepted", {"accepted_not_processed"}),
    ("processed late", one(accepted_ms=(0,), turns=(Turn(300_000, "ok", "b"),)), "processed",
     {"accepted_not_processed"}),
    ("processed at the last millisecond", one(accepted_ms=(0,), turns=(Turn(299_990, "ok", "b"),)),
     "processed", set()),
    ("turn failed", one(accepted_ms=(5,), turns=(Turn(9, "failed", "b"),)), "processed", {"turn_failed"}),
    ("processed by a node that was never asked",
     one(accepted_ms=(5,), turns=(Turn(9, "failed", "b"), Turn(20, "ok", "007"))), "processed",
     {"turn_failed"}),
    ("failed here, succeeded there, and both were asked",
     one(attempts=2, accepted_ms=(5,), turns=(Turn(9, "failed", "b"), Turn(20, "ok", "a"))), "processed",
     {"duplicate_engagement"}),
    ("handed over twice on one node",
     one(accepted_ms=(5,), turns=(Turn(9, "ok", "b"), Turn(9, "ok", "b"))), "processed", set()),
    ("dead letter", one(attempts=3, dead_ms=9000), "dead_letter", {"dead_letter"}),
    ("given up by who did not send it", one(accepted_ms=(5,), turns=(Turn(9, "ok", "b"),), dead_ms=9000,
                                            dead_by="b"), "processed", set()),
    ("given up, and then a late answer", one(accepted_ms=(5,), dead_ms=900, turns=(Turn(950, "ok", "b"),)),
     "dead_letter", {"dead_letter", "answered_after_dead_letter"}),
    ("given up, and the turn failed", one(accepted_ms=(5,), dead_ms=900, turns=(Turn(950, "failed", "b"),)),
     "dead_letter", {"dead_letter"}),
    ("the receiver's clock is nonsense",
     one(accepted_ms=(5,), turns=(Turn(9, "ok", "b"),), broken_clock=True), "processed", set()),
    ("a forged answer says nothing", one(forged=True), "emitted", {"never_accepted"}),
    ("a reply is done when it is accepted", one(answers=-1, accepted_ms=(7,)), "accepted", set()),
    ("on one node", Script(created_ms=START_MS, sender="a", receiver="a", accepted_ms=(0,),
                           turns=(Turn(1, "ok", "a"),)), "processed", set()),
    ("the last answer that a loop is allowed", one(hops=16, accepted_ms=(5,), turns=(Turn(9, "ok", "b"),)),
     "processed", {"loop"}),
    ("one answer less", one(hops=15, accepted_ms=(5,), turns=(Turn(9, "ok", "b"),)), "processed", set()),
    ("task done in time", one(accepted_ms=(5,), task=task(accepted_ms=9, end="task_complete", end_ms=99)),
     "replied", set()),
    ("task that nobody took on", one(accepted_ms=(5,), task=task()), "accepted", {"accepted_not_processed"}),
    ("task taken on late", one(accepted_ms=(5,), task=task(accepted_ms=120_006, end="task_complete",
     end_ms=120_009)), "replied", {"accepted_not_processed"}),
    ("task with more time to take it on",
     one(accepted_ms=(5,), task=task(within=200_000, accepted_ms=120_006, end="task_complete",
     end_ms=120_009)), "replied", set()),
    ("task done after its estimate",
     one(accepted_ms=(5,), task=task(accepted_ms=9, eta_ms=50, end="task_complete", end_ms=51)), "replied",
     {"eta_breach"}),
    ("task whose estimate has passed", one(accepted_ms=(5,), task=task(accepted_ms=9, eta_ms=HOUR - 1,
     updates_ms=(HOUR - 99,))), "replied", {"eta_breach"}),
    ("task without an estimate that took too long", one(accepted_ms=(5,), task=task(within=1_000,
     accepted_ms=9, updates_ms=(900,), end="task_complete", end_ms=1_010)), "replied", {"eta_breach"}),
    ("task that went quiet", one(accepted_ms=(5,), task=task(accepted_ms=9, updates_ms=(99,))), "replied",
     {"progress_breach"}),
    ("task that was quiet for a while", one(accepted_ms=(5,), task=task(accepted_ms=9, end="task_complete",
     end_ms=900_010)), "replied", {"progress_breach"}),
    ("task failed", one(accepted_ms=(5,), task=task(accepted_ms=9, end="task_failed", end_ms=99)), "replied",
     {"task_failed"}),
    ("task with a wrong result", one(accepted_ms=(5,), task=task(accepted_ms=9, end="contract_mismatch",
     end_ms=99)), "replied", {"contract_mismatch"}),
    ("task that somebody else says is done", one(accepted_ms=(5,), task=task(end="task_complete", end_ms=9,
     by="007")), "accepted", {"accepted_not_processed"}),
    ("task given up by its sender while it is worked on", one(accepted_ms=(5,), dead_ms=9, task=task(
     accepted_ms=9)), "dead_letter", {"dead_letter", "answered_after_dead_letter"}),
]  # fmt: skip


ENGAGED = one(attempts=2, accepted_ms=(5,), turns=(Turn(9, "ok", "b"), Turn(20, "ok", "a")))
GIVEN_UP = one(created=START_MS + 9, dead_ms=9000)
HALF = one(receiver="b,007", accepted_ms=(5,), turns=(Turn(9, "ok", "b"),))
HALF_GIVEN_UP = one(receiver="b,007", accepted_ms=(5,), turns=(Turn(9, "ok", "b"),), dead_ms=90)
FIRST = [ENGAGED, GIVEN_UP, HALF, HALF_GIVEN_UP]


@pytest.fixture(scope="module")
def out(spark, tmp_path_factory):
    """One report of all of them."""
    scripts = [*FIRST, *(script for _, script, _, _ in CASES)]
    return report(spark, tmp_path_factory.mktemp("cases"), history(scripts))[1]


def test_judges_each_case_as_an_operator_would(out):
    states = {row["rootId"]: row["state"] for row in table(out, "lifecycle")}
    classes = {}
    for row in table(out, "incidents"):
        classes.setdefault(row["rootId"], set()).add(row["class"])
    for number, (name, _, state, expected) in enumerate(CASES, len(FIRST)):
        assert (states[root_of(number)], classes.get(root_of(number), set())) == (state, expected), name

    of_messages = set().union(*(expected for *_, expected in CASES))
    assert of_messages == set(RULES), "a class without a case"


def test_says_whom_it_concerns_and_where_to_look(out):
    found = {row["incidentId"]: row for row in table(out, "incidents")}
    twice, dead = found[f"duplicate_engagement:{root_of(0)}"], found[f"dead_letter:{root_of(1)}"]
    assert (twice["subject"], twice["rulesVersion"]) == (root_of(0), RULES_VERSION)
    assert (twice["nodes"], twice["agents"]) == (["a", "b"], ["planner", "coder"])
    assert twice["evidence"] == [f"a/{EPOCH}/1", f"b/{EPOCH}/2"]
    assert (dead["nodes"], dead["detail"]) == (["a", "b"], "expired")
    assert dead["evidence"] == [f"a/{EPOCH}/6", f"a/{EPOCH}/7"]


def test_outboxes_have_incidents_of_their_own(spark, tmp_path):
    rows = history([one(accepted_ms=(-5_000,), turns=(Turn(9, "ok", "b"),))])
    rows = [row for row in rows if row.kind != "signal"]
    _, out = report(spark, tmp_path, rows)
    found = {row["class"]: row for row in table(out, "incidents")}
    assert found.keys() == {"clock_skew", "seq_gap", "unknown_kind"}
    assert found["clock_skew"]["nodes"] == ["a", "b"]
    assert found["clock_skew"]["detail"] == "the clock of b is at least 5000 ms behind that of a"
    assert found["seq_gap"]["detail"] == "1 entries between 2 and 2"
    assert found["unknown_kind"]["position"] == f"a/{EPOCH}/3"
    assert all(row["rootId"] is None and row["severity"] in set(Severity) for row in found.values())


def test_of_a_group_each_node_is_judged_by_itself_and_the_incident_names_it(out):
    half, given_up = root_of(FIRST.index(HALF)), root_of(FIRST.index(HALF_GIVEN_UP))
    found = (row for row in table(out, "incidents") if row["rootId"] in {half, given_up})
    assert {(row["incidentId"], row["rootId"], row["toNode"]) for row in found} == {
        (f"never_accepted:{half}@007", half, "007"),
        (f"dead_letter:{given_up}@007", given_up, "007"),
    }
