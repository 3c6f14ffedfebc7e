"""What a gateway and the process of its journal say to each other, over a socketpair.

::

    gateway                                   process of the journal
      Open    home, settings, keys of this start (``gateway.writing.opening``)  ─▶
                                         ◀─  Opened, or Failed and the end
      Build   the state room's view  ─▶        (makes an engine from what is on disk)
                                         ◀─  Decided without effects
      Tick    a batch of inputs  ─▶            (one transaction, one fsync)
                                         ◀─  Decided: effects, all of them durable
                                             Failed: nothing was kept; with a Rest the engine was built anew
                                             Bug: the same, with the traceback

One answer to each, in order. A frame is four bytes of length, then JSON (payloads are raw JSON already; both
ends are the same version, so this format has none). Views are told as steps from the one before.
"""

import msgspec

from gateway.engine.effects import Effect
from gateway.engine.inputs import Input, Now
from gateway.engine.rest import Rest
from gateway.errors import EngineLost, HomeError
from gateway.hosting.viewsteps import ViewStep
from outbox.errors import (
    BadCheckpoint,
    BrokenChain,
    DatabaseTooNew,
    MeshError,
    StorageFailed,
    StorageFull,
)

LENGTH_BYTES = 4


class Build(msgspec.Struct, frozen=True, tag=True):
    """Make an engine."""

    view: ViewStep
    """From nothing."""
    now: Now


class Tick(msgspec.Struct, frozen=True, tag=True):
    """Decide on a batch."""

    batch: list[Input | ViewStep]
    """In place of each changed view the step to it."""
    now: Now


class Opened(msgspec.Struct, frozen=True, tag=True):
    """The journal is sound and up to date."""

    blobs_gone: int
    """Blobs that should be here and are not."""


class Decided(msgspec.Struct, frozen=True, tag=True):
    """It is on disk."""

    effects: list[Effect]
    rest: Rest


class Failed(msgspec.Struct, frozen=True, tag=True):
    """An error of the mesh's tree."""

    code: str
    what: str
    hint: str
    rest: Rest | None
    """Of the engine that was built anew; None when there is none any more."""


class Bug(msgspec.Struct, frozen=True, tag=True):
    """A mistake of ours met an input."""

    trace: str
    rest: Rest


Ask = Build | Tick
Reply = Opened | Decided | Failed | Bug

_ERRORS: dict[str, type[MeshError]] = {
    kind.code: kind
    for kind in (StorageFull, StorageFailed, DatabaseTooNew, BrokenChain, BadCheckpoint, HomeError)
}
"""What may come across; anything else ends the engine, whatever it is called."""

_asks: "msgspec.json.Decoder[Ask]" = msgspec.json.Decoder(Ask)
_replies: "msgspec.json.Decoder[Reply]" = msgspec.json.Decoder(Reply)


def frame(text: bytes) -> bytes:
    """As it goes over the pipe."""
    return len(text).to_bytes(LENGTH_BYTES) + text


def encode(message: msgspec.Struct) -> bytes:
    """Of any message."""
    return msgspec.json.encode(message)


def decode_ask(text: bytes) -> Ask:
    """What a gateway wants."""
    return _asks.decode(text)


def decode_reply(text: bytes) -> Reply:
    """What became of it."""
    return _replies.decode(text)


def failure(error: MeshError, rest: Rest | None) -> Failed:
    """An error as it is told."""
    return Failed(error.code, str(error), error.hint, rest)


def error_of(failed: Failed) -> MeshError:
    """The same error on the other side."""
    return _ERRORS.get(failed.code, EngineLost)(failed.what, hint=failed.hint)
