"""The table of correspondences against the engine's code, the report's classes and the documentation."""

import ast
import re
from importlib import import_module
from pathlib import Path

from gateway.judging.correspondence import CORRESPONDENCES, Seen
from spark.rules import IncidentClass

ROOT = Path(__file__).parents[3]
OPENS = {"open_incident", "note_incident"}


def opened() -> set[str]:
    """The kinds that the engine opens, by the first argument of each call."""
    kinds: set[str] = set()
    for path in sorted((ROOT / "gateway" / "engine").glob("*.py")):
        module = import_module(f"gateway.engine.{path.stem}") if path.stem != "__init__" else None
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr not in OPENS or path.stem == "tick":
                continue
            kind = node.args[0]
            if isinstance(kind, ast.Constant):
                kinds.add(str(kind.value))
            elif isinstance(kind, ast.Name) and hasattr(module, kind.id):
                kinds.add(getattr(module, kind.id))
            else:
                raise AssertionError(
                    f"{path.name}:{node.lineno}: the kind is no constant: {ast.unparse(kind)}"
                )
    return kinds


def test_every_kind_that_a_gateway_opens_and_every_class_of_the_report_has_its_row_and_nothing_else():
    ours = {name for name, row in CORRESPONDENCES.items() if row.seen is not Seen.REPORT}
    theirs = {name for name, row in CORRESPONDENCES.items() if row.seen is not Seen.GATEWAY}
    assert opened() == ours
    assert theirs == set(IncidentClass)
    assert all(row.rule for row in CORRESPONDENCES.values())


def test_the_documentation_shows_the_table():
    text = (ROOT / "docs" / "SLA.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (both|report|gateway) \| (.+) \|$", text, re.MULTILINE)
    assert rows == [(name, row.seen.value, row.rule) for name, row in CORRESPONDENCES.items()]


def test_an_operator_finds_each_kind_that_a_gateway_shows():
    """On the page that says what to do when something is wrong, under the word that is shown."""
    page = (ROOT / "docs" / "OPERATIONS.md").read_text()
    told = {name for name, row in CORRESPONDENCES.items() if row.seen is not Seen.REPORT}
    assert {name for name in told if f"| incident `{name}` |" not in page} == set()
