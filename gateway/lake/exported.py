"""An outbox as a file: its pages verbatim, each with its signed checkpoint, a JSON document a line.

============  ==========================================================================================
line          holds
============  ==========================================================================================
the first     ``format`` (1), ``mesh``, ``node``, ``genesis`` and ``floor``: where the pages begin
each other    ``epoch``, ``entries`` (``seq``, and ``header`` and ``body`` in base64), ``checkpoint``
============  ==========================================================================================

What was exported is verified when it is collected, like an outbox that is read from its home: nobody on the
way needs to be trusted. Format 1 since 2026-11.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from outbox.chain import Checkpoint, Entry, Head, Page
from outbox.errors import BadFrame, InvalidId, StorageFailed
from outbox.ids import MeshId, NodeId, epoch, epoch_ordinal, node_id
from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX
from outbox.reader import JournalReader

FORMAT = 1

_Line = TypeVar("_Line")


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """The first line."""

    format: int
    mesh: MeshId
    node: NodeId
    genesis: Head
    floor: Checkpoint | None


def export(
    reader: JournalReader, write: Callable[[bytes], object], progress: Callable[[Page], object]
) -> None:
    """Write the whole outbox of a journal, all epochs. Raises StorageFailed."""
    who, start = reader.identity(), reader.genesis()
    first = Beginning(format=FORMAT, mesh=who.mesh, node=who.node, genesis=start, floor=reader.floor())
    write(msgspec.json.encode(first) + b"\n")
    at = start
    while (page := reader.read(at, PAGE_ENTRIES_MAX, PAGE_BYTES_MAX)) is not None:
        write(msgspec.json.encode(page) + b"\n")
        progress(page)
        at = page.checkpoint.head


class FileSource:
    """An exported outbox, for the collector."""

    is_writer = True

    def __init__(self, path: Path) -> None:
        """Raises BadFrame for a file that is none of ours, StorageFailed."""
        self._path = path
        self._reached = (0, 0)
        self._lines = self._read_lines()
        self.beginning = self._decoded(next(self._lines, b""), Beginning)
        if self.beginning.format != FORMAT:
            raise BadFrame(f"{path} has format {self.beginning.format}", hint=f"this version reads {FORMAT}")
        self._check_names(node_id, self.beginning.node)
        self._check_names(epoch, self.beginning.genesis.epoch)

    def genesis(self) -> Head:
        """Before the first entry of the oldest epoch."""
        return self.beginning.genesis

    def floor(self) -> Checkpoint | None:
        """Up to where it had been forgotten."""
        return self.beginning.floor

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:  # noqa: ARG002 - as it was cut
        """The next page, or what is left of one. Raises BadFrame, StorageFailed."""
        if _order(after) < self._reached:
            self._lines = self._read_lines()
            next(self._lines)
        for line in self._lines:
            page = self._decoded(line, Page)
            self._check_names(epoch, page.epoch, page.checkpoint.epoch)
            self._reached = _order(page.checkpoint.head)
            if self._reached > _order(after):
                return Page(page.epoch, _after(page, after), page.checkpoint)
        return None

    def _read_lines(self) -> Iterator[bytes]:
        try:
            with self._path.open("rb") as file:
                yield from file
        except OSError as error:
            raise StorageFailed(f"{self._path} cannot be read: {error.strerror}") from None

    def _check_names(self, check: Callable[[str], str], *names: str) -> None:
        """They become names of files, whoever has signed them."""
        try:
            for name in names:
                check(name)
        except InvalidId as error:
            raise BadFrame(f"{self._path} names what it may not: {error}") from None

    def _decoded(self, line: bytes, kind: type[_Line]) -> _Line:
        try:
            return msgspec.json.decode(line, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadFrame(
                f"{self._path} is no exported outbox: {error}",
                hint="make one with: gateway outbox export --raw",
            ) from None


def _after(page: Page, after: Head) -> tuple[Entry, ...]:
    return tuple(entry for entry in page.entries if page.epoch != after.epoch or entry.seq > after.seq)


def _order(head: Head) -> tuple[int, int]:
    return epoch_ordinal(head.epoch), head.seq
