"""Rewrites what is made from the code: docs/PROTOCOL.md in part, docs/incidents.schema.json (``make docs``).

Each table stands between ``<!-- made from the code: NAME -->`` and ``<!-- end -->``.
``tests/test_docs.py`` compares them.
"""

import json
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

from gateway.wire.codec import FRAMES, HISTORY
from outbox.delivery import diagram
from outbox.errors import CallerError, MeshError, PeerError, WorldError
from outbox.kinds import RULES
from spark.document import schema

ROOT = Path(__file__).parents[1]
PROTOCOL = ROOT / "docs" / "PROTOCOL.md"
SCHEMA = ROOT / "docs" / "incidents.schema.json"
PACKAGES = ("outbox", "auth", "stateroom", "spark", "gateway")
_BLOCK = re.compile(r"(<!-- made from the code: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def error_modules() -> Iterator[str]:
    """Names of all modules that hold an error tree."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("errors.py")):
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts)


def error_classes() -> list[type[MeshError]]:
    """Every error of every tree, in the order of their codes."""
    for name in error_modules():
        import_module(name)
    return sorted(_below(MeshError), key=lambda error: (error.code, error.__name__))


def _below(error: type[MeshError]) -> set[type[MeshError]]:
    return {error}.union(*(_below(child) for child in error.__subclasses__()))


def errors_table() -> str:
    """One row a class."""
    rows = (
        (
            f"`{error.code}`",
            f"`{error.__name__}`",
            _fault(error),
            _status(error),
            _yes(error.retryable),
            _line(error),
        )
        for error in error_classes()
    )
    return _table(("code", "class", "whose fault", "HTTP", "may succeed later", "meaning"), rows)


def kinds_table() -> str:
    """One row a kind."""
    rows = ((f"`{kind}`", *(_yes(cell) for cell in rule)) for kind, rule in RULES.items())
    return _table(("kind", "`accepted`", "`processed`", "needs `corrId`", "handed to an agent"), rows)


def delivery_diagram() -> str:
    """The sender's delivery table as a mermaid state diagram."""
    return f"```mermaid\n{diagram().strip()}\n```"


def frames_table() -> str:
    """One row a frame of a link."""
    rows = ((f"`{rule.frame}`", f"`{rule.fields}`", rule.sent_by, rule.meaning) for rule in FRAMES)
    return _table(("frame", "fields", "sent by", "meaning"), rows)


def versions_table() -> str:
    """One row a version of the frames."""
    rows = ((str(number), since, what) for number, since, what in HISTORY)
    return _table(("version", "since", "what it brought"), rows)


def _fault(error: type[MeshError]) -> str:
    branches: tuple[tuple[type[MeshError], str], ...] = (
        (CallerError, "caller"),
        (PeerError, "peer"),
        (WorldError, "machine"),
    )
    return next((whose for branch, whose in branches if issubclass(error, branch)), "ours")


def _status(error: type[MeshError]) -> str:
    return str(getattr(error, "status", ""))


def _line(error: type[MeshError]) -> str:
    return (error.__doc__ or "").partition("\n\n")[0].replace("\n", " ").replace("|", "\\|").strip()


def _yes(flag: bool) -> str:  # noqa: FBT001 - a table cell
    return "yes" if flag else "no"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


BLOCKS = {
    "kinds": kinds_table,
    "delivery": delivery_diagram,
    "frames": frames_table,
    "versions": versions_table,
    "errors": errors_table,
}


def rendered(text: str) -> str:
    """The page with all its blocks made anew. Raises KeyError for a block that nobody makes."""
    return _BLOCK.sub(lambda block: f"{block[1]}\n{BLOCKS[block[2]]()}\n\n{block[3]}", text)


def schema_text() -> str:
    """The JSON Schema of ``incidents.json``."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PROTOCOL.write_text(rendered(PROTOCOL.read_text()))
    SCHEMA.write_text(schema_text())
