"""Look at a Yjs update's bytes before anything else touches them.

``pycrdt`` believes what an update says: 5 bytes that claim 2^28 clients allocate half a gigabyte, 52 KB of
nested arrays overflow the native stack, and a garbage-collected range under another node's client id
silences that node. This check walks the bytes once, without recursion, and lets through only what clients
of flat maps of strings write. Format (Yjs update v1, all numbers lib0 varints)::

    update  = clients { structs client clock { struct } } deletes
    struct  = 10 length                                   a hole (Skip), made by merging updates
            | info (origin | parent) content
    info    = 0x80 has left origin | 0x40 has right origin | 0x20 is a map entry | content kind
    origin  = client clock      whose map and key the struct inherits, so that 0x20 may be missing then
    parent  = 1 root key        when there is no origin
    content = length                         kind 1: deleted
            | 1 119 text                     kind 8: any, one string
    deletes = clients { client ranges { clock length } }

Refused: every other content kind (JSON 2, binary 3, string 4, embed 5, format 6, nested type 7, document
9), GC (0), lists, right origins, nested parents, unknown roots, other values than strings, counts above the
bytes left, clocks from 2^31 on, structs out of order, trailing bytes.
"""

from collections.abc import Set as AbstractSet

import msgspec

from stateroom.errors import InvalidMessage, InvalidUpdate
from stateroom.limits import FORK_CHARS_MAX, KEY_BYTES_MAX, UPDATE_BYTES_MAX, YJS_CLOCK_MAX
from stateroom.varints import Reader

_SKIP = 10
_DELETED = 1
_ANY = 8
_STRING = 119
_LEFT, _RIGHT, _ENTRY = 0x80, 0x40, 0x20


class Survey(msgspec.Struct, frozen=True):
    """What a checked update brings."""

    ends: dict[int, int]
    """By client id: the clock after its last struct."""


def survey(update: bytes, roots: AbstractSet[str]) -> Survey:
    """Check an update for a document whose roots are flat maps of strings.

    Raises InvalidUpdate with a reason; returns which clients' clocks it moves.
    """
    if len(update) > UPDATE_BYTES_MAX:
        raise InvalidUpdate("size")
    reader = Reader(update)
    try:
        ends = _clients(reader, roots)
        _deletes(reader)
        reader.end()
    except InvalidMessage as error:
        raise InvalidUpdate(error.reason) from None
    return Survey(ends)


def clocks(state: bytes) -> dict[int, int]:
    """Read a state vector, ``clients { client clock }``, into clocks by client id. Raises InvalidUpdate."""
    reader = Reader(state)
    found: dict[int, int] = {}
    try:
        for _ in range(reader.count()):
            client = reader.uint()
            found[client] = _add(reader.uint(), 0)
        reader.end()
    except InvalidMessage as error:
        raise InvalidUpdate(error.reason) from None
    return found


def _clients(reader: Reader, roots: AbstractSet[str]) -> dict[int, int]:
    ends: dict[int, int] = {}
    for _ in range(reader.count()):
        structs = reader.count()
        client = reader.uint()
        if client in ends:
            raise InvalidUpdate("client_twice")
        clock = reader.uint()
        for _ in range(structs):
            clock = _add(clock, _struct(reader, roots))
        ends[client] = clock
    return ends


def _struct(reader: Reader, roots: AbstractSet[str]) -> int:
    """Read one struct; its length."""
    info = reader.byte()
    if info == _SKIP:
        return _length(reader)
    if info == 0:
        raise InvalidUpdate("gc")
    if info & _RIGHT:
        raise InvalidUpdate("right_origin")
    if info & _LEFT:
        reader.uint()
        _add(reader.uint(), 0)
    elif info & _ENTRY:
        _parent(reader, roots)
    else:
        raise InvalidUpdate("not_a_map_entry")
    match info & 0x1F:
        case kind if kind == _DELETED:
            return _length(reader)
        case kind if kind == _ANY:
            return _string(reader)
        case _:
            raise InvalidUpdate("content_kind")


def _parent(reader: Reader, roots: AbstractSet[str]) -> None:
    if reader.uint() != 1:
        raise InvalidUpdate("nested_parent")
    if reader.text(KEY_BYTES_MAX) not in roots:
        raise InvalidUpdate("unknown_root")
    reader.text(KEY_BYTES_MAX)


def _string(reader: Reader) -> int:
    if reader.uint() != 1:
        raise InvalidUpdate("value_count")
    if reader.byte() != _STRING:
        raise InvalidUpdate("value_not_string")
    reader.text(FORK_CHARS_MAX)
    return 1


def _deletes(reader: Reader) -> None:
    clients = set()
    for _ in range(reader.count()):
        client = reader.uint()
        if client in clients:
            raise InvalidUpdate("client_twice")
        clients.add(client)
        for _ in range(reader.count()):
            _add(reader.uint(), _length(reader))


def _length(reader: Reader) -> int:
    length = reader.uint()
    if length == 0:
        raise InvalidUpdate("empty_range")
    return length


def _add(clock: int, length: int) -> int:
    if clock + length > YJS_CLOCK_MAX:
        raise InvalidUpdate("clock")
    return clock + length
