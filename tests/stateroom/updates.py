"""Yjs updates that no library writes, byte by byte (the format stands in ``stateroom.preflight``)."""

from stateroom import varints


def written(client: int, clock: int, *structs: bytes) -> bytes:
    """The structs of one client."""
    return varints.uint(len(structs)) + varints.uint(client) + varints.uint(clock) + b"".join(structs)


def update(*clients: bytes, deletes: bytes = b"\x00") -> bytes:
    """An update of what these have written."""
    return varints.uint(len(clients)) + b"".join(clients) + deletes


def entry(key: str, value: str) -> bytes:
    """The first value of a key of ``nodes``."""
    place = b"\x01" + varints.chunk(b"nodes") + varints.chunk(key.encode())
    return b"\x28" + place + b"\x01\x77" + varints.chunk(value.encode())


def next_entry(client: int, clock: int, value: str) -> bytes:
    """A value that follows another one, under the same key."""
    return b"\x88" + varints.uint(client) + varints.uint(clock) + b"\x01\x77" + varints.chunk(value.encode())


def deleted(client: int, clock: int, length: int) -> bytes:
    """A delete set of one range."""
    return b"\x01" + varints.uint(client) + b"\x01" + varints.uint(clock) + varints.uint(length)


def hole(length: int) -> bytes:
    """Writes that are left out."""
    return b"\x0a" + varints.uint(length)


def circle(value: str, first: int = 5) -> bytes:
    """Two values, each of which follows the other."""
    other = first + 1
    return update(
        written(other, 0, next_entry(first, 0, value)), written(first, 0, next_entry(other, 0, value))
    )
