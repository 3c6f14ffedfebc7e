import pytest

from outbox.timestamps import rfc3339
from spark import maintenance
from spark.document import document
from spark.maintenance import COLUMNS, WAITING, maintenances
from spark.report import render
from spark.rules import STREAM_RULES, IncidentClass
from tests.spark.histories import ACCEPT_MS, START_MS, Announced, Turn, history
from tests.spark.reporting import frame, micros, one, report, table

DUE_MS = START_MS + ACCEPT_MS
MINUTE = 60_000


def said(node="b", at_ms=0, **more):
    return Announced(node=node, at_ms=at_ms, **more)


def marks(out):
    return {row["class"]: row["maintenanceOf"] for row in table(out, "incidents")}


def times(spark, tmp_path, *scripts):
    rows = maintenances(frame(spark, tmp_path, history(list(scripts)))).toArrow().to_pylist()
    assert all(tuple(row) == COLUMNS for row in rows)
    return sorted(
        (row["node"], (micros(row["startAt"]) // 1000) - START_MS, _since(row["endAt"])) for row in rows
    )


def _since(when):
    return None if when is None else micros(when) // 1000 - START_MS


def test_each_announcement_stands_until_the_next_one_or_the_time_that_it_names(spark, tmp_path):
    scripts = (
        one(announced=said(until_ms=MINUTE)),
        one(announced=said(at_ms=30_000)),
        one(announced=said(at_ms=40_000, is_over=True)),
        one(announced=said(at_ms=50_000)),
        one(announced=said("a", at_ms=7, until_ms=5)),
        one(announced=said("a", at_ms=900, is_over=True)),
    )
    assert times(spark, tmp_path, *scripts) == [
        ("a", 7, 12),
        ("b", 0, 30_000),
        ("b", 30_000, 40_000),
        ("b", 50_000, None),
    ]


def test_of_one_node_only_the_latest_are_looked_at(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(maintenance, "MAINTENANCES_MAX", 2)
    scripts = [one(announced=said(at_ms=place)) for place in range(5)]
    assert times(spark, tmp_path, *scripts, one(announced=said("a"))) == [
        ("a", 0, None),
        ("b", 3, 4),
        ("b", 4, None),
    ]


@pytest.mark.parametrize(
    ("announced", "expected"),
    [
        (said(), ["b"]),
        (said("a"), ["a"]),
        (said("007"), None),
        (said(until_ms=ACCEPT_MS), None),
        (said(until_ms=ACCEPT_MS + 1), ["b"]),
        (said(at_ms=ACCEPT_MS), ["b"]),
        (said(at_ms=ACCEPT_MS + 1), None),
        (said(is_over=True), None),
    ],
    ids=["where it goes", "its sender", "another", "until then", "longer", "from then", "later", "over"],
)
def test_what_is_late_while_a_node_is_away_as_announced_says_so(spark, tmp_path, announced, expected):
    summary, out = report(spark, tmp_path, history([one(announced=announced)]))
    assert marks(out)[IncidentClass.NEVER_ACCEPTED] == expected
    (count,) = (line for line in summary.classes if line.name == IncidentClass.NEVER_ACCEPTED)
    assert (count.incidents, count.open, count.during_maintenance) == (1, 1, int(expected is not None))


def test_both_ends_away_and_a_failure_that_has_nothing_to_do_with_it(spark, tmp_path):
    scripts = [
        one(announced=said("a"), dead_ms=MINUTE),
        one(announced=said(), accepted_ms=(5,), turns=(Turn(9, "failed", "b"),)),
    ]
    _, out = report(spark, tmp_path, history(scripts))
    found = marks(out)
    assert found[IncidentClass.DEAD_LETTER] == ["a", "b"]
    assert found[IncidentClass.TURN_FAILED] is None
    assert found[IncidentClass.UNKNOWN_KIND] is None
    assert not any(f"'{name}'" in WAITING for name in STREAM_RULES)


def test_the_page_and_the_document_tell_of_it_and_hide_nothing(spark, tmp_path):
    summary, _ = report(spark, tmp_path, history([one(announced=said(until_ms=ACCEPT_MS + 1)), one()]))
    page = render(summary)
    assert "Announced maintenance: b from" in page
    assert "2 incidents of waiting for these nodes opened meanwhile" in page
    assert "during maintenance of b" in page
    found = document(summary, 10)
    (announced,) = found.maintenances
    assert (announced.node, announced.reason, announced.start_at_ms) == ("b", "new disk", START_MS)
    assert rfc3339(announced.until_at_ms) == rfc3339(DUE_MS + 1)
    (count,) = (line for line in found.classes if line.name == IncidentClass.NEVER_ACCEPTED)
    assert (count.incidents, count.open, count.during_maintenance) == (2, 2, 2)
    assert [line.maintenance_of for line in found.incidents if line.name == IncidentClass.NEVER_ACCEPTED] == [
        ("b",),
        ("b",),
    ]


def test_a_page_of_a_mesh_without_maintenance_says_nothing_of_it(spark, tmp_path):
    summary, out = report(spark, tmp_path, history([one()]))
    assert table(out, "maintenance") == []
    assert "aintenance" not in render(summary)
