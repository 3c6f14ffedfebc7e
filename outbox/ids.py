"""Names and numbers that identify things in the mesh.

Sources: envelope table of ``docs/PROTOCOL.md``; UUIDv7 is RFC 9562 section 5.7.
"""

import re
from functools import lru_cache
from typing import NewType

from outbox.errors import InvalidId
from outbox.limits import NAME_CHARS_MAX, NAMES_REMEMBERED

MeshId = NewType("MeshId", str)
"""RFC 7638 thumbprint of the mesh root key: 43 characters of base64url."""

NodeId = NewType("NodeId", str)
AgentId = NewType("AgentId", str)

EventId = NewType("EventId", str)
"""``evt_`` and 32 lower-case hex digits (a UUIDv7); 16 bytes at rest."""

Epoch = NewType("Epoch", str)
"""``<ordinal, 6 digits>-<12 hex digits>``: text order is epoch order."""

Seq = NewType("Seq", int)
"""Place of an entry in one epoch of one outbox: 1, 2, 3 … without holes. 0 means "before the first"."""

_NAME = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,{NAME_CHARS_MAX - 1}}}", re.ASCII)
_EVENT = re.compile(r"evt_[0-9a-f]{32}", re.ASCII)
_EPOCH = re.compile(r"[0-9]{6}-[0-9a-f]{12}", re.ASCII)
_NOT_NAME = re.compile(r"[^a-z0-9._-]+", re.ASCII)

_48_BITS = (1 << 48) - 1
_RANDOM = (1 << 80) - 1 ^ (0xF << 76 | 0b11 << 62)
"""The bits of a UUIDv7 behind its time that are random."""
_VERSION_7 = 7 << 76 | 0b10 << 62
"""The others: that it is one, and of the RFC."""


def _name(text: str, what: str) -> str:
    if not _NAME.fullmatch(text):
        raise InvalidId(what, text, suggestion=suggest_name(text))
    return text


def suggest_name(text: str) -> str:
    """The nearest legal node or agent name, or ``""`` when nothing legal is left."""
    return _NOT_NAME.sub("-", text.lower()).strip("-._")[:NAME_CHARS_MAX]


@lru_cache(NAMES_REMEMBERED)
def node_id(text: str) -> NodeId:
    """Check a node name: 1-63 of ``a-z 0-9 . _ -``, first a letter or digit, nothing folded.

    Raises InvalidId, which carries the nearest legal name.
    """
    return NodeId(_name(text, "node"))


@lru_cache(NAMES_REMEMBERED)
def agent_id(text: str) -> AgentId:
    """Check an agent name; the rule is that of node names. Raises InvalidId."""
    return AgentId(_name(text, "agent"))


def event_id(text: str) -> EventId:
    """Check the text form of an event id. Raises InvalidId."""
    if not _EVENT.fullmatch(text):
        raise InvalidId("event", text)
    return EventId(text)


def event_id_bytes(event: EventId) -> bytes:
    """The 16 bytes an event id takes at rest."""
    return bytes.fromhex(event[4:])


def event_id_from_bytes(raw: bytes) -> EventId:
    """The text form of 16 stored bytes."""
    return EventId("evt_" + raw.hex())


def make_event_id(wall_ms: int, entropy: bytes) -> EventId:
    """A UUIDv7 from a wall clock in milliseconds and 10 random bytes (RFC 9562 section 5.7)."""
    random = int.from_bytes(entropy[:10]) & _RANDOM | _VERSION_7
    return EventId("evt_" + ((wall_ms & _48_BITS) << 80 | random).to_bytes(16).hex())


def event_id_ms(event: EventId) -> int:
    """When an event id was made, in milliseconds of its maker's wall clock."""
    return int(event[4:16], 16)


@lru_cache(NAMES_REMEMBERED)
def epoch(text: str) -> Epoch:
    """Check the text form of an epoch. Raises InvalidId."""
    if not _EPOCH.fullmatch(text):
        raise InvalidId("epoch", text)
    return Epoch(text)


def make_epoch(ordinal: int, entropy: bytes) -> Epoch:
    """The name of the ``ordinal``-th epoch of an outbox, made unique by 6 random bytes."""
    return Epoch(f"{ordinal:06d}-{entropy[:6].hex()}")


@lru_cache(NAMES_REMEMBERED)
def epoch_ordinal(name: Epoch) -> int:
    """The ordinal by which epochs of one outbox compare."""
    return int(name[:6])
