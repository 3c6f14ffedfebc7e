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

What builds on writes that are not here ``pycrdt`` keeps for later, uncounted and for ever. Peers never send
it: each sends what it had in the order in which it came, from the place where the other one stands. So a
survey says what an update builds on.
"""

from collections.abc import Mapping
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
    needs: dict[int, int]
    """By client id: the clock up to which its structs must be here before this update."""
    names: dict[int, int]
    """By client id: the clock up to which its structs must be here with this update: they are followed, or
    deleted."""

    def follows(self, clocks: Mapping[int, int]) -> bool:
        """Whether all that it builds on is in a document with these clocks, or comes with it."""
        here, coming = clocks.get, self.ends.get
        return all(clock <= here(client, 0) for client, clock in self.needs.items()) and all(
            clock <= max(here(client, 0), coming(client, 0)) for client, clock in self.names.items()
        )


def survey(update: bytes, roots: AbstractSet[str]) -> Survey:
    """Check an update for a document whose roots are flat maps of strings.

    Raises InvalidUpdate with a reason; returns which clients' clocks it moves.
    """
    if len(update) > UPDATE_BYTES_MAX:
        raise InvalidUpdate("size")
    reader = Reader(update)
    survey = Survey({}, {}, {})
    try:
        _clients(reader, roots, survey)
        _deletes(reader, survey.names)
        reader.end()
    except InvalidMessage as error:
        raise InvalidUpdate(error.reason) from None
    return survey


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


def _clients(reader: Reader, roots: AbstractSet[str], survey: Survey) -> None:
    for _ in range(reader.count()):
        structs = reader.count()
        client = reader.uint()
        if client in survey.ends:
            raise InvalidUpdate("client_twice")
        clock = needed = reader.uint()
        for _ in range(structs):
            info = reader.byte()
            if info == _SKIP:
                clock = needed = _add(clock, _length(reader))
            else:
                clock = _add(clock, _struct(info, reader, roots, survey.names))
        survey.ends[client] = clock
        survey.needs[client] = needed


def _struct(info: int, reader: Reader, roots: AbstractSet[str], names: dict[int, int]) -> int:
    """Read one struct that is no hole; its length."""
    if info == 0:
        raise InvalidUpdate("gc")
    if info & _RIGHT:
        raise InvalidUpdate("right_origin")
    if info & _LEFT:
        _name(names, reader.uint(), _add(reader.uint(), 1))
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


def _name(names: dict[int, int], client: int, clock: int) -> None:
    if clock > names.get(client, 0):
        names[client] = clock


def _deletes(reader: Reader, names: dict[int, int]) -> None:
    clients = set()
    for _ in range(reader.count()):
        client = reader.uint()
        if client in clients:
            raise InvalidUpdate("client_twice")
        clients.add(client)
        for _ in range(reader.count()):
            _name(names, client, _add(reader.uint(), _length(reader)))


def _length(reader: Reader) -> int:
    length = reader.uint()
    if length == 0:
        raise InvalidUpdate("empty_range")
    return length


def _add(clock: int, length: int) -> int:
    if clock + length > YJS_CLOCK_MAX:
        raise InvalidUpdate("clock")
    return clock + length
