"""How far a backup is, for whoever watches."""

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with what was done and what there is to do: pages of a database, then bytes of the file."""


class Moved:
    """Counts the bytes that went into a file or came out of it."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._done = 0
        self._total = total
        self._progress = progress

    def add(self, size: int) -> None:
        """So many more."""
        self._done += size
        self._progress(self._done, self._total)
