"""The frames of a link as records. Their bytes and the table of fields are in ``gateway.wire.codec``.

Times are milliseconds since 1970 of the sender's wall clock, except ``at_ms``: that is the
pinger's own affair.
"""

from typing import Annotated

import msgspec

from gateway.wire.limits import SAFE_INTEGER_MAX, TEXT_MAX, VERSIONS_MAX
from outbox.chain import Head, Page
from outbox.ids import Epoch, MeshId, NodeId, Seq

Natural = Annotated[int, msgspec.Meta(ge=0, le=SAFE_INTEGER_MAX)]
"""A position or a time."""

Version = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Digest = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
"""SHA-256; base64 in JSON."""

Text = Annotated[str, msgspec.Meta(max_length=TEXT_MAX)]

VERSION = 1
"""What this gateway speaks."""

VERSIONS = (VERSION,)
"""What it understands, oldest first: its own version and the one before it."""


class Hello(msgspec.Struct, frozen=True, tag_field="t", tag="hello"):
    """First frame of each side. Fields of a newer version are ignored here: versions are not agreed yet."""

    v: Version
    """The sender's own version, in which it would like to speak."""
    versions: Annotated[tuple[Version, ...], msgspec.Meta(min_length=1, max_length=VERSIONS_MAX)]
    node: NodeId
    mesh: MeshId
    time_ms: Natural


class Have(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="have"):
    """The head of the sender's own outbox: what there is to read."""

    node: NodeId
    epoch: Epoch
    seq: Natural
    hash: Digest

    @property
    def head(self) -> Head:
        """The same as a position in the chain."""
        return Head(self.epoch, Seq(self.seq), self.hash)


class Want(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="want"):
    """The reader's cursor: send what follows, as it is committed."""

    node: NodeId
    epoch: Epoch | None
    """None: from the beginning of the current epoch; ``after`` is 0 then."""
    after: Natural


class Entries(msgspec.Struct, frozen=True):
    """A page of a node's outbox."""

    node: NodeId
    page: Page


class Seen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="seen"):
    """What the reader has durably handled. It returns flow-control credit; it is no ACK of any event."""

    node: NodeId
    epoch: Epoch
    seq: Natural


class Ping(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="ping"):
    """Asks for a sign of life and the peer's clock."""

    at_ms: Natural


class Pong(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="pong"):
    """The answer, with the ping's ``at_ms`` and the answerer's wall clock."""

    at_ms: Natural
    time_ms: Natural


class Bye(msgspec.Struct, frozen=True, tag_field="t", tag="bye"):
    """Why the sender closes the link. Unknown fields are ignored, so that it can always be read."""

    code: Text
    hint: Text = ""


Frame = Hello | Have | Want | Entries | Seen | Ping | Pong | Bye


def common_version(offered: tuple[int, ...]) -> int | None:
    """The newest version that both sides understand; None ends the link with ``bye version``."""
    return max(set(offered) & set(VERSIONS), default=None)
