"""A note in the home that the next start has to begin a new epoch, and why.

It is there before whatever makes it true (a restored journal is put in place after it) and goes once the
epoch has begun; a start in between begins one epoch too many, which harms nobody."""

from pathlib import Path

import msgspec

from gateway.engine.own_stream import OwnStream, Reason
from gateway.errors import HomeError
from gateway.home import read_private, write_private
from outbox.ids import Epoch


class Mark(msgspec.Struct, frozen=True):
    """What the note says."""

    reason: Reason
    ask: bool = True
    """Whether to wait for what peers remember before anything of theirs is dealt with."""


class EpochMark:
    """The note of one home."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, mark: Mark) -> None:
        """Leave it. Raises HomeError."""
        write_private(self._path, msgspec.json.encode(mark))

    def leave(self, mark: Mark) -> None:
        """The same unless one is there, which says as much: that of a restore more. Raises HomeError."""
        if not self._path.exists():
            self.put(mark)

    def read(self) -> Mark | None:
        """What it says, if it is there. Raises HomeError when it cannot be read."""
        if not self._path.exists():
            return None
        try:
            return msgspec.json.decode(read_private(self._path), type=Mark)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HomeError(
                f"{self._path} is damaged: {error}", hint="put the backup back once more"
            ) from None

    def drop(self) -> None:
        """The epoch has begun."""
        self._path.unlink(missing_ok=True)

    def own_stream(self, current: Epoch) -> OwnStream:
        """What a start knows about its own outbox: nothing but this note."""
        mark = self.read()
        return OwnStream(current) if mark is None else OwnStream(current, mark.reason, ask=mark.ask)
