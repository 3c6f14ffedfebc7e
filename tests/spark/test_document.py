import json

import jsonschema
import pytest

from spark.document import incidents_json, schema
from tests.spark.test_report import standing, summary


def test_the_document_for_programs_is_versioned_and_bounded():
    document = json.loads(incidents_json(summary(size=50), 10))
    assert (document["schemaVersion"], document["rulesVersion"]) == (1, 3)
    assert document["asOf"] == "2026-05-28T20:26:40.000Z"
    assert document["thresholds"]["message"] == {"acceptMs": 60_000, "processMs": 300_000}
    assert len(document["incidents"]) == 10
    assert {"class", "rootId", "openedAtMs", "closedAtMs", "detail"} <= set(document["incidents"][0])


def test_says_of_each_objective_its_target_what_was_achieved_and_what_is_left():
    document = json.loads(incidents_json(summary(standings=(standing(judged=1000, kept=995),)), 10))
    (line,) = document["objectives"]
    assert line["selected"] == {"kind": "message"}
    assert (line["target"], line["achieved"], line["met"]) == (0.99, 0.995, True)
    assert line["budgetLeft"] == pytest.approx(0.5)
    assert [(burn["windowMs"], burn["missed"]) for burn in line["burns"]] == [
        (2_419_200_000, 5),
        (3_600_000, 2),
        (21_600_000, 5),
    ]
    assert line["burns"][1]["burn"] == pytest.approx(20)


@pytest.mark.parametrize("shown", [summary(), summary(size=3, standings=(standing(judged=0, kept=0),))])
def test_keeps_to_its_own_schema(shown):
    checker = jsonschema.Draft202012Validator(schema())
    document = json.loads(incidents_json(shown, 10))
    assert [error.message for error in checker.iter_errors(document)] == []
    del document["asOf"]
    assert [error.message for error in checker.iter_errors(document)] == ["'asOf' is a required property"]
