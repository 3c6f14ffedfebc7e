"""Questions to the journal that may take long: on a thread of their own, with a connection of its own.

A list takes the longer the more is asked for, and a count the longer the more is there. The event loop goes
on meanwhile: SQLite lets go of the interpreter while it works.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from outbox.reader import JournalReader

_Found = TypeVar("_Found")


class Lookups:
    """One question at a time, in the order in which they came."""

    def __init__(self, journal: Path) -> None:
        """Raises StorageFailed, DatabaseTooNew."""
        self._thread = ThreadPoolExecutor(1, "lookups")
        try:
            self._reader = self._thread.submit(JournalReader.open, journal).result()
        except BaseException:
            self._thread.shutdown()
            raise

    async def ask(self, question: Callable[[JournalReader], _Found]) -> _Found:
        """The answer as of now, or of a moment later. Raises what the question raises.

        The question runs on the thread: it takes what it needs of the gateway with it, and touches nothing.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, question, self._reader)

    def close(self) -> None:
        """Wait for the answers that are still awaited, and close the connection."""
        closing = self._thread.submit(self._reader.close)
        self._thread.shutdown()
        closing.result()
