"""Wants of blobs on one link, seen from both ends: each is answered in its turn, by its bytes or a refusal.

A want is the credit: nobody sends a byte of a blob that was not asked for, and who asks for more than the
window at once breaks the link.
"""

from collections import deque
from typing import NamedTuple

from gateway.links.errors import CreditOverrun
from gateway.links.limits import BLOB_WANTS_MAX, BLOB_WINDOW_BYTES_MAX
from gateway.wire.frames import BlobNone, BlobPiece, BlobWant
from outbox.blobref import BlobId
from outbox.errors import BadFrame


class _Want(NamedTuple):
    sha256: BlobId
    offset: int
    end: int
    asked_ms: int


class Asked:
    """What we have asked for and not got yet."""

    def __init__(self) -> None:
        self._wants: deque[_Want] = deque()
        self.bytes = 0
        """Under way."""

    def ask(self, want: BlobWant, now_ms: int) -> None:
        """A want goes out."""
        self._wants.append(_Want(want.sha256, want.offset, want.offset + want.bytes, now_ms))
        self.bytes += want.bytes

    def came(self, piece: BlobPiece, now_ms: int) -> int | None:
        """Bytes are here; how long their want took, if that is answered with them. Raises CreditOverrun."""
        if not self._wants:
            raise CreditOverrun("bytes of a blob came that nobody has asked for")
        want, size = self._wants[0], len(piece.data)
        if (piece.sha256, piece.offset) != (want.sha256, want.offset) or want.offset + size > want.end:
            raise CreditOverrun("bytes of a blob came that were not asked for next")
        self.bytes -= size
        if want.offset + size < want.end:
            self._wants[0] = want._replace(offset=want.offset + size)
            return None
        self._wants.popleft()
        return now_ms - want.asked_ms

    def refused(self, none: BlobNone) -> None:
        """The next want is answered with a refusal. Raises CreditOverrun."""
        if not self._wants or self._wants[0].sha256 != none.sha256:
            raise CreditOverrun("a blob was refused that was not asked for next")
        want = self._wants.popleft()
        self.bytes -= want.end - want.offset


class Wanted:
    """What the peer has asked for and not got yet."""

    def __init__(self) -> None:
        self._wants: deque[_Want] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._wants)

    def want(self, want: BlobWant) -> None:
        """A want came. Raises CreditOverrun above the window, BadFrame for no bytes at all."""
        if want.bytes < 1:
            raise BadFrame("a want of no bytes")
        if len(self._wants) >= BLOB_WANTS_MAX:
            raise CreditOverrun(f"more than {BLOB_WANTS_MAX} stretches of blobs are asked for at once")
        if self._bytes + want.bytes > BLOB_WINDOW_BYTES_MAX:
            raise CreditOverrun(f"more than {BLOB_WINDOW_BYTES_MAX} bytes of blobs are asked for at once")
        self._wants.append(_Want(want.sha256, want.offset, want.offset + want.bytes, 0))
        self._bytes += want.bytes

    def next(self, size_max: int) -> tuple[BlobId, int, int]:
        """Blob, offset and size of the next bytes to send."""
        want = self._wants[0]
        return want.sha256, want.offset, min(size_max, want.end - want.offset)

    def sent(self, size: int) -> None:
        """So many of them are on their way."""
        want = self._wants.popleft()
        self._bytes -= size
        if want.offset + size < want.end:
            self._wants.appendleft(want._replace(offset=want.offset + size))

    def refuse(self) -> None:
        """The next want is answered with a refusal."""
        want = self._wants.popleft()
        self._bytes -= want.end - want.offset
