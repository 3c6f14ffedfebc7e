import json

from spark.summary import incidents_json
from tests.spark.test_report import summary


def test_the_document_for_machines_is_versioned_and_bounded():
    document = json.loads(incidents_json(summary(size=50), 10))
    assert (document["schemaVersion"], document["rulesVersion"]) == (1, 1)
    assert document["asOf"] == "2026-05-28T20:26:40.000Z"
    assert document["thresholds"]["message"] == {"acceptMs": 60_000, "processMs": 300_000}
    assert len(document["incidents"]) == 10
    assert {"class", "rootId", "openedAtMs", "closedAtMs", "detail"} <= set(document["incidents"][0])


def test_counts_what_is_open_and_what_was_not_collected():
    shown = summary(size=2)
    assert shown.open_incidents == 6
    assert shown.missing_nodes == ("vps0", "vps1")
    assert [line.source for line in shown.of("kind")] == ["message", "reply"]
