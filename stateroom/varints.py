"""Reading and writing lib0's variable-length integers (unsigned LEB128), strictly.

Source: lib0 ``encoding.writeVarUint`` and ``decoding.readVarUint``, the numbers of Yjs and y-protocols.
"""

from stateroom.errors import InvalidMessage
from stateroom.limits import CLOCK_MAX, VARINT_BYTES_MAX


class Reader:
    """A position in bytes. Every read is bounded by the bytes left; errors are InvalidMessage."""

    __slots__ = ("_at", "_raw")

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self._raw) - self._at

    def byte(self) -> int:
        """The next byte."""
        if self._at >= len(self._raw):
            raise InvalidMessage("truncated")
        self._at += 1
        return self._raw[self._at - 1]

    def uint(self) -> int:
        """An integer of at most 53 bits in its shortest form."""
        value = 0
        for group in range(VARINT_BYTES_MAX):
            byte = self.byte()
            value |= (byte & 0x7F) << 7 * group
            if byte < 0x80:
                if (byte == 0 and group) or value > CLOCK_MAX:
                    break
                return value
        raise InvalidMessage("varint")

    def count(self) -> int:
        """How many things follow, each of at least one byte: never more than the bytes left."""
        value = self.uint()
        if value > self.left:
            raise InvalidMessage("count")
        return value

    def chunk(self, size_max: int) -> bytes:
        """Bytes behind their length."""
        size = self.count()
        if size > size_max:
            raise InvalidMessage("size")
        self._at += size
        return self._raw[self._at - size : self._at]

    def text(self, size_max: int) -> str:
        """UTF-8 behind its length in bytes."""
        try:
            return self.chunk(size_max).decode()
        except UnicodeDecodeError:
            raise InvalidMessage("utf8") from None

    def end(self) -> None:
        """Nothing may follow."""
        if self.left:
            raise InvalidMessage("trailing_bytes")


def uint(value: int) -> bytes:
    """The shortest form of an integer."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def chunk(raw: bytes) -> bytes:
    """Bytes behind their length."""
    return uint(len(raw)) + raw
