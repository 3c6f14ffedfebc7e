"""Scenario files: worlds in which something once went wrong."""

from pathlib import Path

import pytest

from gateway.harness.sim.plan import Fault, Plan
from gateway.harness.sim.runner import run_plan
from gateway.harness.sim.scenario import missing_line, parse_scenario, text_of
from outbox.errors import InvalidEvent

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_was_mended_stays_mended(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("# "), "a scenario says why it is kept"
    scenario = parse_scenario(text)
    verdict = run_plan(scenario.plan)
    assert verdict.ok, [str(finding) for finding in verdict.findings]
    assert missing_line(scenario.shows, verdict.trace) is None


def test_a_file_that_is_written_is_read_again() -> None:
    plan = Plan(
        seed=1,
        nodes=2,
        agents_per_node=1,
        minutes=1,
        messages=0,
        every_s=20,
        faults=(Fault.CRASH, Fault.STOP),
    )
    assert parse_scenario(text_of(plan, "why")).plan == plan


@pytest.mark.parametrize("line", ["seed: x", "faults: rain", "shows:", "colour: blue", "hello"])
def test_a_line_that_means_nothing_is_refused(line: str) -> None:
    good = text_of(
        Plan(seed=1, nodes=2, agents_per_node=1, minutes=1, messages=0, every_s=20, faults=()), "why"
    )
    with pytest.raises(InvalidEvent):
        parse_scenario(good + line)
    with pytest.raises(InvalidEvent):
        parse_scenario(good.replace("nodes", "# nodes"))


def test_lines_are_found_in_their_order() -> None:
    trace = ["0.1 n1 starts", "0.2 n2 starts", "0.3 n1 dies"]
    assert missing_line(["n1 starts", "n1 dies"], trace) is None
    assert missing_line(["n1 dies", "n1 starts"], trace) == "n1 starts"
