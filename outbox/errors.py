"""Every error of the mesh that a caller can meet, as one tree.

::

    MeshError                      code            meaning
    ├── CallerError                                the request is wrong; repeating it changes nothing
    │   ├── InvalidId              invalid_id
    │   ├── InvalidEvent           invalid_event
    │   ├── TooLarge               too_large
    │   ├── UnknownRecipient       unknown_recipient
    │   ├── IdempotencyConflict    idempotency_conflict
    │   ├── AmbiguousEvent         ambiguous_event
    │   ├── HopLimit               hop_limit
    │   ├── LoopLimit              loop_limit
    │   ├── NameTaken              name_taken
    │   │   └── StillLeaving       name_taken      retryable
    │   ├── NotFound               not_found
    │   ├── NodeRevoked            node_revoked
    │   └── CursorError
    │       ├── ForeignEpoch       foreign_epoch
    │       ├── CursorPastEnd      cursor_past_end
    │       ├── CursorBelowFloor   cursor_below_floor
    │       └── InvalidCursor      invalid_cursor
    ├── PeerError                                  another node broke a rule; its link is closed
    │   ├── BrokenChain            broken_chain
    │   ├── BadCheckpoint          bad_checkpoint
    │   ├── BodyWithheld           body_withheld
    │   ├── StreamForked           stream_forked
    │   └── BadFrame               bad_frame
    └── WorldError                                 disk, clock, operating system
        ├── StorageFull            storage_full
        ├── StorageFailed          storage_failed
        ├── HomeLocked             home_locked
        └── DatabaseTooNew         database_too_new

``code`` is stable and goes over the wire; ``hint`` tells an operator what to do; ``retryable`` says
whether the same call may succeed later. Higher packages add their own branches below these kinds.
"""

from collections.abc import Sequence
from typing import ClassVar


class MeshError(Exception):
    """Root of the tree; the text of the exception is the one-line "what"."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint
        if hint:
            self.add_note(f"what to do: {hint}")  # a traceback shows it below the text


class CallerError(MeshError):
    """The request is wrong."""

    code = "invalid_request"


_NAME_RULE = "1-63 of a-z 0-9 . _ -, first a letter or digit"
_ID_RULES = {
    "node": _NAME_RULE,
    "agent": _NAME_RULE,
    "event": "evt_ and 32 of 0-9 a-f, as `gateway send` prints it",
    "blob": "64 of 0-9 a-f, as `gateway blob list` shows it",
    "epoch": "six digits, - and 12 of 0-9 a-f",
}


class InvalidId(CallerError):
    """A node, agent, event or epoch name breaks its rule."""

    code = "invalid_id"

    def __init__(self, what: str, text: str, *, suggestion: str = "") -> None:
        hint = f"use {suggestion!r}" if suggestion else _ID_RULES.get(what, "")
        super().__init__(f"{text[:80]!r} is not a valid {what} id", hint=hint)
        self.suggestion = suggestion


class InvalidEvent(CallerError):
    """Bytes are not an event, or an event breaks the envelope's rules."""

    code = "invalid_event"


class TooLarge(CallerError):
    """A payload, body or frame is above its limit."""

    code = "too_large"


class UnknownRecipient(CallerError):
    """Nobody in the mesh has ever heard of this agent; nothing was appended."""

    code = "unknown_recipient"

    def __init__(self, name: str, near: tuple[str, ...]) -> None:
        hint = "did you mean " + ", ".join(near) + "?" if near else "list the agents with: gateway agents"
        super().__init__(f"no agent named {name!r} is known in this mesh", hint=hint)
        self.near = near


class IdempotencyConflict(CallerError):
    """The idempotency key was used before for another request."""

    code = "idempotency_conflict"


class AmbiguousEvent(CallerError):
    """Several nodes sent the agent an event under this id, and the answer does not say which one it means."""

    code = "ambiguous_event"

    def __init__(self, event: str, sources: Sequence[str]) -> None:
        hint = "answer with the lease id of the turn; ids are stolen, tell who runs the mesh"
        super().__init__(f"{event} came from {', '.join(sources)}", hint=hint)


class HopLimit(CallerError):
    """An answer to an answer to an answer …: agents that talk in a circle are stopped here."""

    code = "hop_limit"


class LoopLimit(CallerError):
    """Two agents, or all in one thread, answer each other faster than is good for anybody."""

    code = "loop_limit"
    retryable = True

    def __init__(self, who: str, wait_ms: int) -> None:
        hint = f"try again in {-(-wait_ms // 1000)} s; if nobody needs an answer, do not send one"
        super().__init__(f"{who} answer each other too fast", hint=hint)
        self.wait_ms = wait_ms


class NameTaken(CallerError):
    """Another node, or this one, has an agent of that name."""

    code = "name_taken"


class StillLeaving(NameTaken):
    """An agent of that name was removed a moment ago, and not all of its turns have ended."""

    retryable = True

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} was removed, and its unfinished turns are still failing", hint="try again in a moment"
        )


class NotFound(CallerError):
    """There is no such event, agent, invite or stream for this caller."""

    code = "not_found"


class NodeRevoked(CallerError):
    """The key of this node was revoked: it speaks for nobody any more."""

    code = "node_revoked"


class CursorError(CallerError):
    """A position in a stream cannot be read from."""

    code = "invalid_cursor"


class ForeignEpoch(CursorError):
    """The cursor belongs to an epoch that the stream does not have."""

    code = "foreign_epoch"


class CursorPastEnd(CursorError):
    """The cursor lies behind the last entry."""

    code = "cursor_past_end"


class CursorBelowFloor(CursorError):
    """Retention has passed the cursor: the entries after it are gone."""

    code = "cursor_below_floor"


class InvalidCursor(CursorError):
    """The cursor is no position at all."""

    code = "invalid_cursor"


class PeerError(MeshError):
    """Another node broke a rule."""

    code = "peer_error"


class BrokenChain(PeerError):
    """Entries do not hash to what their checkpoint says, or leave a hole."""

    code = "broken_chain"


class BadCheckpoint(PeerError):
    """A checkpoint's signature is not by the stream's key, or it names another stream."""

    code = "bad_checkpoint"


class BodyWithheld(PeerError):
    """An entry that names the reader came without its body."""

    code = "body_withheld"


class StreamForked(PeerError):
    """A node has signed two histories of one epoch: nothing more is read of it."""

    code = "stream_forked"


class BadFrame(PeerError):
    """A link frame cannot be read."""

    code = "bad_frame"


class WorldError(MeshError):
    """The machine failed us."""

    code = "unavailable"
    retryable = True


class StorageFull(WorldError):
    """The disk is full: nothing was written, reads go on."""

    code = "storage_full"


class StorageFailed(WorldError):
    """The database could not be read or written."""

    code = "storage_failed"


class HomeLocked(WorldError):
    """Another process owns this home."""

    code = "home_locked"


class DatabaseTooNew(WorldError):
    """The database was written by a newer version."""

    code = "database_too_new"
    retryable = False
