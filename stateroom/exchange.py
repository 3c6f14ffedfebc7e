"""Messages of y-protocols (sync and awareness, version 1) to and from bytes.

======================  =====================================  ==================================
message                 bytes                                  meaning
======================  =====================================  ==================================
``SyncStep1``           0 0 chunk(state vector)                "this is what I have"
``SyncStep2``           0 1 chunk(update)                      the answer: "this is what you lack"
``Update``              0 2 chunk(update)                      a change
``Awareness``           1 chunk(count { client clock json })   who is here
``QueryAwareness``      3                                      "who is here?"
======================  =====================================  ==================================

Type 2 (auth) is never sent here: a connection is authorised before its first Yjs byte. One frame is one
message; varints are in their shortest form, nothing may follow.
"""

import msgspec

from stateroom import varints
from stateroom.errors import InvalidMessage
from stateroom.limits import (
    AWARENESS_BYTES_MAX,
    AWARENESS_ENTRIES_MAX,
    MESSAGE_BYTES_MAX,
    RECORD_CHARS_MAX,
    STATE_VECTOR_BYTES_MAX,
    UPDATE_BYTES_MAX,
)
from stateroom.varints import Reader

_SYNC, _AWARENESS, _QUERY = 0, 1, 3
_STEP1, _STEP2, _UPDATE = 0, 1, 2


class SyncStep1(msgspec.Struct, frozen=True, tag=True):
    """A state vector; to be answered with SyncStep2."""

    state: bytes


class SyncStep2(msgspec.Struct, frozen=True, tag=True):
    """What the other side lacked."""

    update: bytes


class Update(msgspec.Struct, frozen=True, tag=True):
    """A change."""

    update: bytes


class Entry(msgspec.Struct, frozen=True):
    """The awareness state of one client; the JSON ``null`` says that it left."""

    client: int
    clock: int
    state: str


class Awareness(msgspec.Struct, frozen=True, tag=True):
    """States of some clients."""

    entries: tuple[Entry, ...]


class QueryAwareness(msgspec.Struct, frozen=True, tag=True):
    """Asks for all states."""


Message = SyncStep1 | SyncStep2 | Update | Awareness | QueryAwareness


def decode(frame: bytes) -> Message:
    """Read one frame. Raises InvalidMessage."""
    if len(frame) > MESSAGE_BYTES_MAX:
        raise InvalidMessage("size")
    reader = Reader(frame)
    match reader.uint():
        case 0:
            message: Message = _sync(reader)
        case 1:
            message = Awareness(_entries(Reader(reader.chunk(AWARENESS_BYTES_MAX))))
        case 3:
            message = QueryAwareness()
        case _:
            raise InvalidMessage("type")
    reader.end()
    return message


def encode(message: Message) -> bytes:
    """The frame of a message."""
    match message:
        case SyncStep1(state):
            return bytes((_SYNC, _STEP1)) + varints.chunk(state)
        case SyncStep2(update):
            return bytes((_SYNC, _STEP2)) + varints.chunk(update)
        case Update(update):
            return bytes((_SYNC, _UPDATE)) + varints.chunk(update)
        case Awareness(entries):
            body = b"".join(_entry(entry) for entry in entries)
            return bytes((_AWARENESS,)) + varints.chunk(varints.uint(len(entries)) + body)
        case QueryAwareness():
            return bytes((_QUERY,))


def _sync(reader: Reader) -> Message:
    match reader.uint():
        case 0:
            return SyncStep1(reader.chunk(STATE_VECTOR_BYTES_MAX))
        case 1:
            return SyncStep2(reader.chunk(UPDATE_BYTES_MAX))
        case 2:
            return Update(reader.chunk(UPDATE_BYTES_MAX))
        case _:
            raise InvalidMessage("sync_type")


def _entries(reader: Reader) -> tuple[Entry, ...]:
    count = reader.count()
    if count > AWARENESS_ENTRIES_MAX:
        raise InvalidMessage("count")
    entries = tuple(
        Entry(reader.uint(), reader.uint(), reader.text(2 * RECORD_CHARS_MAX)) for _ in range(count)
    )
    reader.end()
    return entries


def _entry(entry: Entry) -> bytes:
    return varints.uint(entry.client) + varints.uint(entry.clock) + varints.chunk(entry.state.encode())
