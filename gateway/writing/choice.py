"""Where the journal is written, as the settings say."""

from typing import Protocol

from gateway.clock import Clock
from gateway.engine.inputs import Now
from gateway.hosting.host import EngineHost
from gateway.hosting.inline import InlineHost
from gateway.writing.aside import WriterAside
from gateway.writing.opening import Opening
from gateway.writing.writer import Writer
from outbox.lock import HomeLock
from stateroom.view import View


class OpenWriter(Protocol):
    """A journal that is open for writing, here or elsewhere."""

    blobs_gone: int
    """Blobs that should be here and are not."""

    async def host(self, view: View, now: Now) -> EngineHost:
        """An engine on it; once. Raises StorageFailed, EngineLost."""
        ...

    async def close(self) -> None:
        """Let it go."""
        ...


class WriterHere:
    """In this process."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.blobs_gone = writer.blobs_gone

    async def host(self, view: View, now: Now) -> InlineHost:
        """See ``OpenWriter``."""
        return InlineHost(self._writer.ticking(view, now))

    async def close(self) -> None:
        """See ``OpenWriter``."""
        self._writer.close()


def open_writer(opening: Opening, clock: Clock, lock: HomeLock) -> OpenWriter:
    """Open the journal for writing. Raises as ``Writer``, and EngineLost."""
    if opening.config.engine.host == "process":
        return WriterAside(opening, lock)
    return WriterHere(Writer(opening, clock))
