"""YAML as it stands in the file: every value knows its line, and no key is passed over.

A reader takes the fields that it knows out of a ``Section`` and then calls ``close``: what is left is
refused, with the nearest name it could have been. Anchors are followed; a key twice in one mapping is an
error, since one of the two would be ignored.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, NoReturn

from spark.errors import InvalidSlo
from spark.limits import SLO_FILE_CHARS_MAX

if TYPE_CHECKING:
    from yaml.nodes import Node

_TEXT = "tag:yaml.org,2002:str"
_NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
_TRUTH = "tag:yaml.org,2002:bool"


class Section:
    """One mapping of the file; ``path`` is where it stands, for whoever must correct it."""

    def __init__(self, node: "Node", file: str, path: str = "", line: int = 0) -> None:
        from yaml.nodes import MappingNode

        self.file, self.path = file, path
        self._line = line or node.start_mark.line + 1
        self._fields: dict[str, Node] = {}
        self._lines: dict[str, int] = {}
        self._asked: list[str] = []
        if not isinstance(node, MappingNode):
            self.refuse("", "is not a mapping", "write `key: value` lines, indented below it")
        for key, value in node.value:
            name, is_twice = str(key.value), str(key.value) in self._lines
            self._fields[name], self._lines[name] = value, key.start_mark.line + 1
            if is_twice:
                self.refuse(name, "stands here twice", "keep one of them")

    def text(self, name: str, default: str | None = None) -> str:
        """A text; an empty one counts as missing. Raises InvalidSlo."""
        node = self._take(name)
        if node is None or node.value == "":
            return default if default is not None else self._missing(name)
        if node.tag != _TEXT:
            self.refuse(name, "is not a text", "put it in quotes")
        return str(node.value)

    def number(self, name: str) -> float | None:
        """A number; None when it is not there. Raises InvalidSlo."""
        node = self._take(name)
        if node is None:
            return None
        if node.tag not in _NUMBERS:
            self.refuse(name, "is not a number", "write digits, without a unit")
        try:
            return float(node.value)
        except ValueError:
            return self.refuse(name, "is not a decimal number", "write digits, without a unit")

    def truth(self, name: str, *, default: bool) -> bool:
        """``true`` or ``false``. Raises InvalidSlo."""
        node = self._take(name)
        if node is None:
            return default
        if node.tag != _TRUTH or node.value not in {"true", "false"}:
            self.refuse(name, "is neither true nor false", "write true or false")
        return bool(node.value == "true")

    def section(self, name: str) -> "Section":
        """A mapping that must be there. Raises InvalidSlo."""
        found = self.maybe(name)
        return found if found is not None else self._missing(name)

    def maybe(self, name: str) -> "Section | None":
        """A mapping that may be there."""
        node = self._take(name)
        return None if node is None else Section(node, self.file, self._at(name), self._lines[name])

    def sections(self, name: str) -> "list[Section]":
        """A list of mappings with one element at least. Raises InvalidSlo."""
        from yaml.nodes import SequenceNode

        node = self._take(name)
        if node is None:
            self._missing(name)
        if not isinstance(node, SequenceNode) or not node.value:
            self.refuse(name, "is not a list", "begin each of its elements with `- `")
        return [Section(child, self.file, f"{self._at(name)}[{i}]") for i, child in enumerate(node.value)]

    def pairs(self, name: str) -> dict[str, str]:
        """A mapping of free names to texts (labels, annotations); empty when it is not there."""
        section = self.maybe(name)
        return {} if section is None else {key: section.text(key, "") for key in list(section._fields)}

    def skip(self, *names: str) -> None:
        """Fields that are allowed and mean nothing here."""
        for name in names:
            self._take(name)

    def close(self) -> None:
        """Refuse every field that nobody asked for. Raises InvalidSlo."""
        for name in self._fields:
            if name not in self._asked:
                near = get_close_matches(name, self._asked, 1)
                known = f"did you mean {near[0]}?" if near else f"known here: {', '.join(self._asked)}"
                self.refuse(name, "is no field of this place", known)

    def refuse(self, name: str, what: str, hint: str) -> NoReturn:
        """Raise InvalidSlo about one field, or with ``""`` about this section."""
        raise _invalid(self.file, self._lines.get(name, self._line), self._at(name), what, hint)

    def _take(self, name: str) -> "Node | None":
        self._asked.append(name)
        node = self._fields.get(name)
        return None if node is None or node.tag == "tag:yaml.org,2002:null" else node

    def _at(self, name: str) -> str:
        return ".".join(part for part in (self.path, name) if part)

    def _missing(self, name: str) -> NoReturn:
        self.refuse(name, "is missing", f"add `{name}:` here")


def documents(text: str, file: str) -> Iterator[Section]:
    """The documents of a YAML file, empty ones left out. Raises InvalidSlo."""
    import yaml

    if len(text) > SLO_FILE_CHARS_MAX:
        raise _invalid(file, 1, "", f"has more than {SLO_FILE_CHARS_MAX} characters", "split the file")
    try:
        nodes = [node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = 1 if mark is None else mark.line + 1
        what = f"is not YAML: {error.problem}"
        raise _invalid(file, line, "", what, "check indentation and colons") from None
    except RecursionError:
        raise _invalid(file, 1, "", "is nested too deeply", "is it the right file?") from None
    except yaml.YAMLError as error:
        reason = str(error).partition("\n")[0][:60]
        raise _invalid(file, 1, "", f"is not YAML: {reason}", "is it the right file?") from None
    return (Section(node, file) for node in nodes if node.tag != "tag:yaml.org,2002:null")


def _invalid(file: str, line: int, path: str, what: str, hint: str) -> InvalidSlo:
    return InvalidSlo(f"{file}:{line}: {path} {what}" if path else f"{file}:{line}: {what}", hint=hint)
