"""What can go wrong in the state room, below the three kinds of ``outbox.errors``.

::

    PeerError
    ├── InvalidRecord      invalid_record      a value of the room is not a record
    ├── InvalidUpdate      invalid_update      bytes are not an update that this room takes
    ├── InvalidMessage     invalid_message     bytes are not a message of the Yjs sync protocol
    └── RoomFull           room_full           the room would grow above its bound
    WorldError
    └── RoomStoreFailed    room_store_failed   room.db could not be read or written
"""

from outbox.errors import PeerError, WorldError


class InvalidRecord(PeerError):
    """A value is not a well-formed record; ``reason`` is one of a few fixed words, fit for a counter."""

    code = "invalid_record"

    def __init__(self, reason: str) -> None:
        super().__init__(f"not a record: {reason}", hint="the node that wrote it runs other software or lies")
        self.reason = reason


class InvalidUpdate(PeerError):
    """An update is malformed or holds what a flat map of strings never needs; ``reason`` as above."""

    code = "invalid_update"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"update refused: {reason}", hint="write only strings into the flat maps of this room"
        )
        self.reason = reason


class InvalidMessage(PeerError):
    """A frame is no message of the sync or awareness protocol; ``reason`` as above."""

    code = "invalid_message"

    def __init__(self, reason: str) -> None:
        super().__init__(f"message refused: {reason}", hint="speak y-protocols sync and awareness, version 1")
        self.reason = reason


class RoomFull(PeerError):
    """The document would outgrow its bound."""

    code = "room_full"
    retryable = True


class RoomStoreFailed(WorldError):
    """The room's database could not be read or written."""

    code = "room_store_failed"
