"""Flow control of a link, in bytes of payload and for each direction by itself.

A reader grants credit; a writer may begin a frame while some is left, so it overruns by less than a frame.
What the reader has handled is granted anew, nothing before: it never holds more than its window and a frame.
"""

from collections import deque

from gateway.links.errors import CreditOverrun
from gateway.links.limits import GRANT_AT_BYTES, LINK_WINDOW_BYTES, VERSION1_WINDOW_BYTES
from gateway.wire.frames import Credit, Seen


class Allowance:
    """What we may send."""

    def __init__(self) -> None:
        self._left = 0

    @property
    def open(self) -> bool:
        """Whether a frame may begin."""
        return self._left > 0

    def grant(self, size: int) -> None:
        """The peer lets so much more come."""
        self._left += size

    def spend(self, size: int, seq: int) -> None:  # noqa: ARG002 - where a page ends matters in version 1
        """A page goes out."""
        self._left -= size

    def hear(self, frame: Credit | Seen) -> bool:
        """What the reader says; whether more may be sent now."""
        if isinstance(frame, Credit):
            self.grant(frame.bytes)
        return isinstance(frame, Credit)


class Window(Allowance):
    """The same for a peer of version 1: a fixed window, which its ``seen`` opens again."""

    def __init__(self) -> None:
        super().__init__()
        self.grant(VERSION1_WINDOW_BYTES)
        self._under_way: deque[tuple[int, int]] = deque()

    def spend(self, size: int, seq: int) -> None:
        """A page that ends at ``seq`` goes out."""
        super().spend(size, seq)
        self._under_way.append((seq, size))

    def hear(self, frame: Credit | Seen) -> bool:
        """``seen`` is credit."""
        if isinstance(frame, Seen):
            self.seen(frame.seq)
        return isinstance(frame, Seen)

    def seen(self, seq: int) -> None:
        """The reader has handled everything up to here."""
        while self._under_way and self._under_way[0][0] <= seq:
            self.grant(self._under_way.popleft()[1])


class Grants:
    """What the peer may send."""

    def __init__(self) -> None:
        self._left = 0
        self._free = LINK_WINDOW_BYTES

    def arrived(self, size: int) -> None:
        """A frame is here. Raises CreditOverrun when it began without credit."""
        if self._left <= 0:
            raise CreditOverrun(f"{size} bytes came without credit")
        self._left -= size

    def handled(self, size: int) -> bool:
        """So much of what came needs no memory any more; whether a grant is due."""
        self._free += size
        return self._free >= GRANT_AT_BYTES

    def due(self) -> int:
        """What to grant now; 0 while it is not worth a frame."""
        if self._free < GRANT_AT_BYTES:
            return 0
        size, self._free = self._free, 0
        self._left += size
        return size
