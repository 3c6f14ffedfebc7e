"""Spark against planted history: what was planted is found, and nothing is invented."""

from gateway.lake.generator import generate
from outbox.timestamps import parse_rfc3339
from spark.job import make_report
from spark.sla import DEFAULTS
from spark.sources import event_files
from tests.gateway.lake.test_generator import truth
from tests.spark.reporting import table


def test_finds_what_was_planted_and_invents_nothing(spark, tmp_path):
    lake, out = tmp_path / "lake", tmp_path / "out"
    made = generate(lake, 20_000, 11, progress=lambda *_: None)
    out.mkdir()
    summary = make_report(
        spark,
        event_files(lake),
        out,
        parse_rfc3339(made.as_of),
        progress=lambda *_: None,
        thresholds=DEFAULTS,
    )
    found = [(row["class"], row["subject"]) for row in table(out, "incidents")]
    assert set(found) == truth(lake)
    assert len(found) == len(set(found))
    assert {line.name: line.incidents for line in summary.classes} == made.incidents
    assert {row["failureClass"] for row in table(out, "reviews")} >= {"task_failed", "contract_mismatch"}
