"""The documents are tested: links lead somewhere, commands exist, and the protocol page is true."""

import ast
import importlib.util
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from types import ModuleType

import click
import msgspec
import pytest

from gateway.cli.main import cli
from gateway.config import Config
from gateway.engine.inquiries import STATUS_REQUEST, STATUS_UNKNOWN
from gateway.engine.maintenance import MAINTENANCE
from gateway.engine.retention import RETENTION_FLOOR
from gateway.engine.signals import INCIDENT
from outbox import envelope
from outbox.errors import CallerError, MeshError, PeerError, WorldError
from outbox.recall import RECALL, RECALLED, STREAM_EPOCH

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PROTOCOL = ROOT / "docs" / "PROTOCOL.md"
RECORDS = [
    "Event",
    "Trace",
    "RouteDecision",
    "Ack",
    "DeadLetter",
    "Signal",
    "IncidentNotice",
    "MaintenanceNotice",
    "BlobRef",
    "Header",
]

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_MAKE = re.compile(r"\bmake ([a-z][a-z-]*)")
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_CELL = re.compile(r"`([A-Za-z0-9]+)`")


def page_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def renderer() -> ModuleType:
    """The script that writes the tables: scripts are no package, so it is loaded by its path."""
    spec = importlib.util.spec_from_file_location("render_protocol", ROOT / "scripts" / "render_protocol.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def errors() -> list[type[MeshError]]:
    return list(renderer().error_classes())


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_relative_link_leads_to_a_file_or_a_heading(page: Path) -> None:
    broken = []
    for link in _LINK.findall(page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {target for code in _CODE.findall(page.read_text()) for target in _MAKE.findall(code)}
    assert named <= targets


def leaves(command: click.Command, path: str) -> Iterator[str]:
    """Every command that does something, as it is typed."""
    inner = command.commands if isinstance(command, click.Group) else {}
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield path
    for name, below in inner.items():
        yield from leaves(below, f"{path} {name}".strip())


def unknown_words(line: str) -> Iterator[str]:
    """What of a command line the program would refuse: a command, or an option of that command."""
    command: click.Command = cli
    words = re.sub(r"^--home \S+ ", "", line).split()
    while isinstance(command, click.Group) and words and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    if isinstance(command, click.Group) and words and re.fullmatch(r"[a-z]+", words[0]):
        yield words[0]
    taken = {
        text for each in (cli, command) for one in each.params for text in (*one.opts, *one.secondary_opts)
    }
    options = (option for word in words for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", word))
    yield from (option for option in options if option not in {*taken, "--help"})


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_command_that_a_page_names_is_one_and_takes_its_options(page: Path) -> None:
    wrong = []
    for code in _CODE.findall(page.read_text()):
        for line in re.findall(r"(?:^|[`\s;&|(])gateway ([^`\n]+)", code):
            said = re.split(r" ?(?:&&|;|\|\||#|→)", re.sub(r"[\[\]]", "", line))[0]
            wrong += [f"gateway {said}: {word}" for word in unknown_words(said)]
    assert not wrong, "\n".join(wrong)


def test_every_command_is_on_some_page() -> None:
    pages = "\n".join(page.read_text() for page in PAGES)
    assert not [path for path in leaves(cli, "") if not re.search(rf"\b{path}\b", pages)]


def test_every_setting_is_on_the_page_of_operations_and_no_other() -> None:
    page = (ROOT / "docs" / "OPERATIONS.md").read_text()
    (table,) = re.findall(r"^## Settings\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    keys = [cell.split("|")[1] for cell in re.findall(r"^\| `.*$", table, re.MULTILINE)]
    named = {key for cell in keys for key in re.findall(r"`([\w.]+)`", cell)}
    sections = {section.encode_name: section.type for section in msgspec.structs.fields(Config)}
    assert named == {
        f"{name}.{key.encode_name}"
        for name, section in sections.items()
        for key in msgspec.structs.fields(section)
    }


def test_every_make_target_says_what_it_does() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony is not None
    documented = set(re.findall(r"^([a-z][a-z-]*):.*## ", makefile, re.MULTILINE))
    assert documented == set(phony[1].split())


def test_the_tables_made_from_the_code_are_fresh() -> None:
    page = PROTOCOL.read_text()
    assert renderer().rendered(page) == page, "run: make docs"


def test_the_schema_of_incidents_json_is_fresh() -> None:
    made = renderer()
    assert made.SCHEMA.read_text() == made.schema_text(), "run: make docs"


def test_every_made_table_is_on_the_page() -> None:
    on_page = set(re.findall(r"<!-- made from the code: (\w+) -->", PROTOCOL.read_text()))
    assert on_page == set(renderer().BLOCKS)


@pytest.mark.parametrize("record", RECORDS)
def test_every_field_on_the_wire_is_on_the_page_and_no_other(record: str) -> None:
    page = PROTOCOL.read_text()
    table = re.search(rf"<!-- fields of {record} -->\n\n((?:\|.*\n)+)", page)
    assert table is not None
    first_cells = [row.split("|")[1] for row in table[1].splitlines()[2:]]
    named = [name for cell in first_cells for name in _CELL.findall(cell)]
    fields = [field.encode_name for field in msgspec.structs.fields(getattr(envelope, record))]
    assert sorted(named) == sorted(fields)


def test_every_error_is_drawn_in_the_tree_of_its_package() -> None:
    undrawn = []
    for error in errors():
        tree = ast.get_docstring(
            ast.parse(Path(ROOT, *error.__module__.split(".")).with_suffix(".py").read_text())
        )
        line = next(
            (line for line in (tree or "").splitlines() if re.search(rf"\b{error.__name__}\b", line)), ""
        )
        if not line or (not error.__subclasses__() and error.code not in line):
            undrawn.append(f"{error.__module__}.{error.__name__}: {error.code}")
    assert not undrawn, "\n" + "\n".join(undrawn)


def test_no_leaf_of_the_trees_has_the_code_of_a_bare_branch() -> None:
    bare = {branch.code for branch in (MeshError, CallerError, PeerError, WorldError)}
    silent = [error for error in errors() if "code" not in vars(error) and not error.__subclasses__()]
    nameless = [error.__name__ for error in silent if error.code in bare]
    assert not nameless


def test_errors_are_defined_in_errors_files_only() -> None:
    """Those a caller can meet; a signal inside one shell is a plain exception and stays there."""
    names = {error.__name__ for error in errors()}
    strays: list[str] = []
    for package in renderer().PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.name == "errors.py":
                continue
            classes = (
                node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)
            )
            strays += [
                f"{page_name(path)}:{node.lineno} {node.name}"
                for node in classes
                if {ast.unparse(base) for base in node.bases} & names
            ]
    assert not strays, "\n" + "\n".join(strays)


@pytest.mark.parametrize(("title", "folder"), [("gateway", "gateway"), ("engine", "gateway/engine")])
def test_a_map_has_each_file_of_its_folder_once(title: str, folder: str) -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    (table,) = re.findall(rf"^## The {title}, file by file\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    cells = re.findall(r"^\|[^|]*\|(.*)\|$", table, re.MULTILINE)
    named = re.findall(r"`(\w+)`", "".join(cells))
    files = {path.stem for path in (ROOT / folder).glob("*.py")} - {"__init__", "__main__"}
    assert sorted(named) == sorted(files), f"docs/ARCHITECTURE.md, {title}: {sorted({*named} ^ files)}"


def test_every_decision_is_in_the_list_of_decisions() -> None:
    folder = ROOT / "docs" / "decisions"
    records = {path.name for path in folder.glob("[0-9]*.md")}
    assert set(re.findall(r"\]\((\d{4}-[^)]+)\)", (folder / "README.md").read_text())) == records
    assert sorted(int(name[:4]) for name in records) == list(range(1, len(records) + 1))


def test_every_dependency_has_its_reason() -> None:
    reasons = (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text()
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = config["project"]["optional-dependencies"].values()
    groups = config["dependency-groups"].values()
    declared = [*config["project"]["dependencies"], *chain(*extras), *chain(*groups)]
    names = {re.split(r"[\[=<>]", requirement)[0] for requirement in declared}
    assert not {name for name in names if not re.search(rf"(\| |`){re.escape(name)}( |`)", reasons)}


def test_every_test_that_a_page_names_exists() -> None:
    named = {
        (path, name)
        for page in PAGES
        for path, name in re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", page.read_text())
    }
    assert named
    missing = [
        f"{path}::{name}"
        for path, name in sorted(named)
        if not (ROOT / path).exists() or f"def {name}(" not in (ROOT / path).read_text()
    ]
    assert not missing, "\n".join(missing)


def test_every_signal_stands_in_the_protocol() -> None:
    names = {
        INCIDENT,
        MAINTENANCE,
        STATUS_REQUEST,
        STATUS_UNKNOWN,
        RETENTION_FLOOR,
        STREAM_EPOCH,
        RECALL,
        RECALLED,
    }
    (row,) = re.findall(r"^\| `signal` \| (`incident`.*) \|$", PROTOCOL.read_text(), re.MULTILINE)
    assert set(re.findall(r"`([a-z_]+)`", row)) == names
