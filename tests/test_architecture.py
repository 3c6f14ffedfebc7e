"""The shape of the code is a test: every module has a place, every core its partner.

Layers, cycles and what cores may import are import-linter's contracts in ``pyproject.toml`` (``make check``);
here stands what it cannot see. A module is a *core* (named in the contract ``cores``) or a *shell* (named in
``tool.mesh.shells``): that one list is in ``pyproject.toml``.
"""

import ast
import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("outbox", "auth", "stateroom", "spark", "gateway")
FILE_LINES_MAX = 350
FUNCTION_LINES_MAX = 60
VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "manager", "base", "misc", "shared"})

LIMIT_NAMES = ("_MAX", "_MIN", "_WITHIN_S", "_WITHIN_MS", "_EVERY_S", "_EVERY_MS", "_AHEAD_MS")
NO_LIMITS = ("gateway.harness", "gateway.judging", "gateway.lake", "spark")
"""What worlds, verdicts and made-up histories are made with bounds nothing that users run."""

CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = {contract["id"]: contract for contract in CONFIG["tool"]["importlinter"]["contracts"]}
CORES: list[str] = CONTRACTS["cores"]["source_modules"]
SHELLS: list[str] = CONFIG["tool"]["mesh"]["shells"]


def sources() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def suites() -> list[Path]:
    return sorted(
        path for path in (ROOT / "tests").rglob("*.py") if "node_modules" not in path.relative_to(ROOT).parts
    )


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def says_nothing(path: Path) -> bool:
    """An ``__init__`` of a docstring only needs no place."""
    return path.name == "__init__.py" and len(ast.parse(path.read_text()).body) <= 1


def partner(core: str) -> Path:
    *folders, name = core.split(".")
    return ROOT.joinpath("tests", *folders, f"test_{name}.py")


def source_of(core: str) -> Path:
    path = ROOT.joinpath(*core.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def listed(problems: list[str]) -> str:
    return "\n" + "\n".join(f"  {problem}" for problem in problems)


def test_every_module_is_named_as_a_core_or_a_shell() -> None:
    placed = {*CORES, *SHELLS}
    missing = [
        f"{module_name(path)}: name it in pyproject.toml, in the contract `cores` or in tool.mesh.shells"
        for path in sources()
        if not says_nothing(path) and module_name(path) not in placed
    ]
    assert not missing, listed(missing)


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_tested_is_what_lies_beside_the_tests(package: str) -> None:
    """And not another checkout, which the environment may have been made for."""
    assert importlib.import_module(package).__path__ == [str(ROOT / package)]


def test_no_place_is_kept_for_a_module_that_is_gone() -> None:
    gone = sorted({*CORES, *SHELLS} - {module_name(path) for path in sources()})
    assert not gone, listed(gone)


def test_the_two_lists_are_sorted_and_share_nothing() -> None:
    assert sorted(set(CORES)) == CORES
    assert sorted(set(SHELLS)) == SHELLS
    assert not {*CORES} & {*SHELLS}


def does_something(path: Path) -> bool:
    """Constants, records and protocols have nothing to test: no function of theirs has a body."""
    return any(
        not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant)
        for function in functions(ast.parse(path.read_text()))
        for statement in function.body
    )


def test_every_core_has_its_partner_test() -> None:
    cores = [core for core in CORES if does_something(source_of(core))]
    missing = [
        f"{core}: no {partner(core).relative_to(ROOT)}" for core in cores if not partner(core).exists()
    ]
    assert not missing, listed(missing)


def test_no_name_is_vague() -> None:
    vague = [str(path.relative_to(ROOT)) for path in [*sources(), *suites()] if path.stem in VAGUE_NAMES]
    assert not vague, listed(vague)


def test_no_package_is_empty() -> None:
    folders = {path.parent for path in sources() if path.name == "__init__.py"}
    empty = [
        str(folder.relative_to(ROOT)) for folder in sorted(folders) if len(list(folder.rglob("*.py"))) == 1
    ]
    assert not empty, listed(empty)


@pytest.mark.parametrize("path", sources(), ids=module_name)
def test_no_file_or_function_outgrows_its_name(path: Path) -> None:
    text = path.read_text()
    lines = len(text.splitlines())
    assert lines <= FILE_LINES_MAX, f"{path.relative_to(ROOT)} has {lines} lines: split it"
    long = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}: {span} lines"
        for function in functions(ast.parse(text))
        if (span := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert not long, listed(long)


def test_every_bound_stands_in_the_limits_of_its_package() -> None:
    outside = [
        f"{path.relative_to(ROOT)}:{statement.lineno} {target.id}"
        for path in sources()
        if path.stem != "limits" and not module_name(path).startswith(NO_LIMITS)
        for statement in ast.parse(path.read_text()).body
        if isinstance(statement, ast.Assign) and is_number(statement.value)
        for target in statement.targets
        if isinstance(target, ast.Name) and target.id.endswith(LIMIT_NAMES)
    ]
    assert not outside, listed(outside)


def is_number(value: ast.expr) -> bool:
    leaves = [node for node in ast.walk(value) if not isinstance(node, ast.operator | ast.unaryop)]
    return all(isinstance(leaf, ast.BinOp | ast.UnaryOp | ast.Constant) for leaf in leaves)


@pytest.mark.parametrize("path", sources(), ids=module_name)
def test_every_except_names_what_it_expects(path: Path) -> None:
    broad = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception"))
    ]
    assert not broad, listed(broad)


@pytest.mark.parametrize("core", CORES)
def test_cores_do_not_ask_the_time(core: str) -> None:
    """``datetime`` is fine for arithmetic; this keeps out the clock behind it."""
    clocks = {"now", "utcnow", "today"}
    asks = [
        node.lineno
        for node in ast.walk(ast.parse(source_of(core).read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in clocks
        and isinstance(node.value, ast.Name)
        and node.value.id in {"datetime", "date"}
    ]
    assert not asks, f"{core} reads the clock in lines {asks}"
