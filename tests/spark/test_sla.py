import pytest

from outbox.kinds import RULES
from spark.deliveries import deliveries
from spark.errors import InvalidThreshold
from spark.events import ROOT_KINDS
from spark.sla import DEFAULTS, Threshold, check_thresholds, latency, moment
from spark.tasks import TaskKind
from tests.spark.histories import ACCEPT_MS, AS_OF_MS, START_MS, Script, Turn, history
from tests.spark.reporting import THRESHOLDS, one, told


def test_every_acknowledged_kind_has_a_promise_of_the_right_shape():
    check_thresholds(DEFAULTS)
    assert set(DEFAULTS) == set(ROOT_KINDS)
    processed = {kind for kind, promised in DEFAULTS.items() if promised.process_ms is not None}
    assert processed == {TaskKind.CREATE, *(kind for kind, rule in RULES.items() if rule.processed)}


@pytest.mark.parametrize(
    ("kind", "threshold"),
    [("ack", Threshold(1)), ("x' or true", Threshold(1)), ("message", Threshold(0)),
     ("message", Threshold(1, -1)), ("message", Threshold(1, 0))],
)  # fmt: skip
def test_senseless_promises_are_refused(kind, threshold):
    with pytest.raises(InvalidThreshold):
        check_thresholds({kind: threshold})


def test_a_moment_does_not_depend_on_a_zone():
    assert moment(1_000) == "timestamp_millis(1000L)"


def test_what_is_not_yet_due_is_not_judged(spark, tmp_path):
    rows = history([
        one(accepted_ms=(ACCEPT_MS,), turns=(Turn(ACCEPT_MS + 5, "ok", "b"),)),
        one(accepted_ms=(ACCEPT_MS + 1,), turns=(Turn(ACCEPT_MS + 5, "failed", "b"),)),
        one(),
        one(created=AS_OF_MS - 10),
        Script(created_ms=START_MS, sender="b", receiver="a", from_agent="coder", to_agent="planner",
               accepted_ms=(100,), attempts=2, dead_ms=10),
    ])  # fmt: skip
    lines = latency(deliveries(told(spark, tmp_path, rows), THRESHOLDS), AS_OF_MS).collect()
    line = {(row.dimension, row.source, row.target): row for row in lines}
    there = line["route", "planner", "coder"]
    assert (there.events, there.acceptJudged, there.acceptedInTime) == (4, 3, 1)
    assert (there.processJudged, there.processedInTime, there.failed, there.dead) == (2, 2, 1, 0)
    assert (there.acceptMsP50, there.acceptMsP99) == (ACCEPT_MS, ACCEPT_MS + 1)
    assert there.replyMsP50 is None
    back = line["nodes", "b", "a"]
    assert (back.events, back.dead, back.retried, back.acceptMsP95) == (1, 1, 1, 100)
    assert line["all", "", ""].events == 5
