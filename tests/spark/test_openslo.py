import pytest

from spark.errors import InvalidSlo
from spark.limits import SLOS_MAX
from spark.objectives import Measure, Objective
from spark.openslo import parse_objectives

SERVICE = """\
apiVersion: openslo/v1
kind: Service
metadata: {name: agents, displayName: Agents}
spec: {description: what people wait for}
"""

THRESHOLD = """\
apiVersion: openslo/v1
kind: SLO
metadata:
  name: coder-answers
  displayName: The coder answers
  labels: {team: tools}
spec:
  service: agents
  description: A question is answered while its asker still remembers it.
  indicator:
    metadata: {name: coder-answer-time}
    spec:
      thresholdMetric:
        metricSource:
          type: gateway-mesh
          spec: {measure: answered, kind: message, agent: coder}
  timeWindow:
    - duration: 28d
      isRolling: true
  budgetingMethod: Occurrences
  objectives:
    - op: lte
      value: 300000
      target: 0.99
"""

RATIO = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: route}
spec:
  service: agents
  indicator:
    spec:
      ratioMetric:
        counter: true
        good:
          metricSource:
            type: gateway-mesh
            spec: {measure: processed, fromAgent: planner, toAgent: coder}
        total:
          metricSource: {type: gateway-mesh, spec: {fromAgent: planner, toAgent: coder}}
  timeWindow: [{duration: 6h, isRolling: true}]
  budgetingMethod: Occurrences
  objectives:
    - {displayName: most, targetPercent: 99.5}
    - {displayName: nearly all, target: 0.999}
"""

TOTAL = "          metricSource: {type: gateway-mesh, spec: {fromAgent: planner, toAgent: coder}}\n"


def test_reads_thresholds_ratios_and_services():
    threshold, most, nearly_all = parse_objectives("---\n".join((SERVICE, THRESHOLD, RATIO)), "slo.yaml")
    assert threshold == Objective(
        name="coder-answers", title="The coder answers", measure=Measure.ANSWERED,
        selected=(("kind", "message"), ("agent", "coder")), limit_ms=300_000, target=0.99,
        window_ms=28 * 86_400_000,
    )  # fmt: skip
    assert (most.name, most.title, most.target, most.limit_ms) == ("route-1", "most", 0.995, None)
    assert (nearly_all.name, nearly_all.window_ms) == ("route-2", 6 * 3_600_000)
    assert nearly_all.selected == (("fromAgent", "planner"), ("toAgent", "coder"))


@pytest.mark.parametrize("duration", ["30m", "6h", "28d", "4w"])
def test_windows_are_counted_in_minutes_hours_days_or_weeks(duration):
    (found,) = parse_objectives(THRESHOLD.replace("28d", duration), "f")
    assert (
        found.window_ms
        == {
            "30m": 1_800_000,
            "6h": 21_600_000,
            "28d": 2_419_200_000,
            "4w": 2_419_200_000,
        }[duration]
    )


@pytest.mark.parametrize(
    ("text", "old", "new", "message", "hint"),
    [
        (THRESHOLD, "openslo/v1", "openslo/v2", "1: apiVersion is 'openslo/v2'", "write openslo/v1"),
        (THRESHOLD, "kind: SLO", "kind: SLI", "2: kind 'SLI' is not read here", "write SLO or Service"),
        (THRESHOLD, "name: coder-answers", "name: Coder", "4: metadata.name is 'Coder'",
         "write lower case letters, digits and dashes"),
        (THRESHOLD, "thresholdMetric", "tresholdMetric",
         "13: spec.indicator.spec.tresholdMetric is no field of this place", "did you mean thresholdMetric?"),
        (THRESHOLD, "  service: agents\n", "", "7: spec.service is missing", "add `service:` here"),
        (THRESHOLD, "Occurrences", "Timeslices", "20: spec.budgetingMethod is 'Timeslices'",
         "write Occurrences: messages are counted, not minutes"),
        (THRESHOLD, "duration: 28d", "duration: 1M", "18: spec.timeWindow[0].duration is '1M'",
         "write 30m, 6h, 28d or 4w"),
        (THRESHOLD, "isRolling: true", "isRolling: false", "19: spec.timeWindow[0].isRolling is not true",
         "write isRolling: true; calendar windows are not read here"),
        (THRESHOLD, "  budgeting", "    - {duration: 1h, isRolling: true}\n  budgeting",
         "20: spec.timeWindow[1] is a second window", "write one SLO for each window"),
        (THRESHOLD, "type: gateway-mesh", "type: prometheus",
         "15: spec.indicator.spec.thresholdMetric.metricSource.type is 'prometheus'", "write gateway-mesh"),
        (THRESHOLD, "answered,", "answer,",
         "16: spec.indicator.spec.thresholdMetric.metricSource.spec.measure is 'answer'",
         "did you mean answered?"),
        (THRESHOLD, "kind: message,", "kind: signal,",
         "16: spec.indicator.spec.thresholdMetric.metricSource.spec.kind 'signal' is never acknowledged",
         "one of: "),
        (THRESHOLD, "agent: coder", "agnet: coder",
         "16: spec.indicator.spec.thresholdMetric.metricSource.spec.agnet is no field of this place",
         "did you mean agent?"),
        (THRESHOLD, "agent: coder", "agent: ''' or true'",
         "16: spec.indicator.spec.thresholdMetric.metricSource.spec.agent is \"' or true\"", ""),
        (THRESHOLD, "agent: coder", "type: 'a b'",
         "16: spec.indicator.spec.thresholdMetric.metricSource.spec.type is 'a b'",
         "write up to 128 letters, digits and ._:/@+-"),
        (THRESHOLD, "agent: coder", "agent: coder, toAgent: coder",
         "16: spec.indicator.spec.thresholdMetric.metricSource.spec.toAgent says the same as agent",
         "keep one of them"),
        (THRESHOLD, "spec: {measure: answered, kind: message, agent: coder}", "",
         "14: spec.indicator.spec.thresholdMetric.metricSource.spec is missing", "add `spec:` here"),
        (THRESHOLD, "op: lte", "op: gte", "22: spec.objectives[0].op is 'gte'",
         "write lte: at most so many milliseconds"),
        (THRESHOLD, "value: 300000", "value: 0.5", "23: spec.objectives[0].value is no time",
         "write whole milliseconds, at least 1"),
        (THRESHOLD, "      value: 300000\n", "", "22: spec.objectives[0].value is no time",
         "write whole milliseconds, at least 1"),
        (THRESHOLD, "value: 300000", "value: .inf", "23: spec.objectives[0].value is not a decimal number",
         "write digits, without a unit"),
        (THRESHOLD, "target: 0.99", "target: 1.0",
         "24: spec.objectives[0].target leaves no error budget, or nothing else", "write 0.99 for 99 %"),
        (THRESHOLD, "target: 0.99", "targetPercent: 0",
         "24: spec.objectives[0].targetPercent leaves no error budget, or nothing else",
         "write 99 for 99 %"),
        (THRESHOLD, "      target: 0.99\n", "",
         "22: spec.objectives[0] needs target or targetPercent, and not both", "write target: 0.99"),
        (RATIO, "counter: true", "counter: false",
         "9: spec.indicator.spec.ratioMetric.counter is not true",
         "write counter: true: messages are counted"),
        (RATIO, TOTAL, "          metricSource: {type: gateway-mesh}\n",
         "14: spec.indicator.spec.ratioMetric.total selects other messages than good",
         "write the same selection in both"),
        (RATIO, "      ratioMetric:", "      thresholdMetric: {}\n      ratioMetric:",
         "7: spec.indicator.spec needs thresholdMetric or ratioMetric, and not both",
         "see docs/SLA.md for both"),
        (SERVICE + "---\n" + THRESHOLD, "service: agents", "service: agent",
         "13: spec.service 'agent' is not in this file", "did you mean agents?"),
        (SERVICE, "x", "x", " holds no SLO", "begin with `apiVersion: openslo/v1`, `kind: SLO`"),
        (THRESHOLD + "---\n" + THRESHOLD, "x", "x", " two objectives are called 'coder-answers'",
         "give each its own name"),
        ("---\n".join(THRESHOLD.replace("name: coder-answers", f"name: s{i}") for i in range(SLOS_MAX + 1)),
         "x", "x", f" more than {SLOS_MAX} objectives", "make two reports of two files"),
    ],
)  # fmt: skip
def test_refuses_what_it_cannot_judge_and_says_where(text, old, new, message, hint):
    with pytest.raises(InvalidSlo) as caught:
        parse_objectives(text.replace(old, new), "slo.yaml")
    assert str(caught.value) == f"slo.yaml:{message}"
    assert caught.value.hint.startswith(hint)
