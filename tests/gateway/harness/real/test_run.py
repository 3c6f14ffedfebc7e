"""The command on real processes: a short run holds, and says what it did."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli.main import cli


def harness(directory: Path, *flags: str) -> dict[str, object]:
    run = CliRunner().invoke(cli, ["harness", "run", "--dir", str(directory), "--json", *flags])
    assert run.exit_code in {0, 1}, run.output
    found = json.loads(run.stdout.strip().splitlines()[-1])
    assert run.exit_code == (0 if found["ok"] else 1)
    return found


@pytest.fixture
def place(mesh_dir: Path) -> Path:
    return mesh_dir / "run"


@pytest.mark.long
def test_kills_and_partitions(place: Path) -> None:
    flags = (
        "--nodes",
        "2",
        "--duration",
        "6",
        "--faults",
        "kill,partition,flap",
        "--seed",
        "3",
        "--rate",
        "15",
    )
    found = harness(place, *flags)
    assert found["faults"] == []
    assert found["counts"]["sent"] > 50
    assert found["counts"]["lost"] == 0
    assert sum(found["injected"].values()) >= 2
    assert set(found["injected"]) <= {"kill", "partition", "flap"}
    assert "--seed 3" in found["repeat"]
    assert "every promise was kept" in (place / "report.html").read_text()
    assert json.loads((place / "report.json").read_text()) == found
    assert "planned:" in (place / "faults.log").read_text()
    assert [path.name for path in sorted(place.iterdir())] == [
        "faults.log",
        "logs",
        "report.html",
        "report.json",
    ]


def test_a_class_that_does_not_exist_is_wrong_usage() -> None:
    run = CliRunner().invoke(cli, ["harness", "run", "--faults", "earthquake"])
    assert run.exception is not None
    assert "earthquake" in str(run.exception)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_nodes_that_forget_lose_nothing_that_others_remember(place: Path) -> None:
    flags = ("--nodes", "3", "--duration", "60", "--faults", "restore,clone", "--seed", "4")
    found = harness(place, *flags)
    assert found["faults"] == []
    assert set(found["injected"]) == {"restore", "clone"}
    assert found["counts"]["forgotten"] >= found["counts"]["gone"] > 0
    assert found["counts"]["lost"] == 0


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_spark_report_tells_the_same_under_all_faults(place: Path) -> None:
    flags = ("--nodes", "3", "--duration", "30", "--faults", "all", "--seed", "5", "--report")
    found = harness(place, *flags)
    assert found["faults"] == []
    assert found["reportAgrees"] is True
    assert (place / "report" / "report.html").exists()
