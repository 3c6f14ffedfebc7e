import json

from spark.figures import WIDTHS_MS, bucket_width
from spark.limits import BUCKETS_MAX
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


def test_slices_of_time_are_usual_ones_and_few():
    assert bucket_width(0) == 1000
    assert list(WIDTHS_MS) == sorted(WIDTHS_MS)
    for span_ms in (25_000, 60_001, 3_600_000, 86_400_000, 365 * 86_400_000):
        width = bucket_width(span_ms)
        assert width in WIDTHS_MS
        assert span_ms / width <= BUCKETS_MAX
