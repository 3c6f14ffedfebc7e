"""The disk of one simulated node: the journal's twin in memory, with what disks do.

A commit may be refused while the disk is full, may take long, and may be lost when the process dies before it
has heard of it: nothing that depends on it has left the process then, so both outcomes are honest.
"""

from collections.abc import Callable

from outbox.chain import Head
from outbox.errors import StorageFull
from outbox.memory import MemoryStore
from outbox.records import Identity


class Disk(MemoryStore):
    """Survives the processes that use it."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self.full = False
        self.slow_us = 0
        """What a commit takes."""
        self.busy: Callable[[int], None] = lambda _us: None
        """Stops the process for so long."""
        self.commits = 0
        self._last: tuple[list[Callable[[], object]], Head] | None = None

    def commit(self) -> None:
        """Keep what was written. Raises StorageFull."""
        undo, before = self._undo or [], self._committed
        if undo and self.full:
            raise StorageFull("no space left on the simulated disk")
        super().commit()
        self._last = (undo, before)
        if undo:
            self.commits += 1
            if self.slow_us:
                self.busy(self.slow_us)

    def lose_last_commit(self) -> None:
        """The machine died inside the last commit: it never reached the disk."""
        if self._last is None:
            return
        undo, self._committed = self._last
        self._undo = undo
        self._last = None
        self.rollback()
