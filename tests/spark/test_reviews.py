from spark.deliveries import deliveries
from spark.incidents import broken_rules, incidents
from spark.limits import SAMPLE_IDS_MAX
from spark.reviews import COLUMNS, reviews
from tests.spark.histories import AS_OF_MS, Task, history, root_of
from tests.spark.reporting import THRESHOLDS, one, told

FAILS = Task(accepted_ms=9, end="task_failed", end_ms=99)
WRONG = Task(accepted_ms=9, end="contract_mismatch", end_ms=99)


def test_failures_are_gathered_by_capability_and_pair_of_skills(spark, tmp_path):
    scripts = [one(accepted_ms=(5,), task=FAILS)] * (SAMPLE_IDS_MAX + 2)
    scripts += [one(accepted_ms=(5,), task=WRONG), one(task=Task(capability=None)), one()]
    lives = deliveries(told(spark, tmp_path, history(scripts)), THRESHOLDS, broken_rules(AS_OF_MS))
    found = reviews(incidents(lives)).collect()
    assert tuple(found[0].asDict()) == COLUMNS
    assert {(row["capabilityId"], row["delegationVersion"], row["executorVersion"]) for row in found} == {
        ("cap.build", "1.0.0", "2.0.0")
    }
    counts = {row["failureClass"]: (row["incidents"], row["sampleCorrIds"]) for row in found}
    assert counts == {
        "task_failed": (SAMPLE_IDS_MAX + 2, [root_of(number) for number in range(SAMPLE_IDS_MAX)]),
        "contract_mismatch": (1, [root_of(SAMPLE_IDS_MAX + 2)]),
    }
