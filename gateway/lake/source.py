"""Where a collector reads an outbox from."""

from typing import Protocol

from outbox.chain import Checkpoint, Head, Page


class Source(Protocol):
    """An outbox, from wherever it is read: its own journal or somebody's copy."""

    is_writer: bool
    """Whether it is the writer's own: what stands below its floor was forgotten, not lost."""

    def genesis(self) -> Head:
        """The head before the first entry of the oldest epoch."""
        ...

    def floor(self) -> Checkpoint | None:
        """Where what is here begins; None when that is the beginning."""
        ...

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """As ``outbox.store.entries.EntryStore.read``."""
        ...
