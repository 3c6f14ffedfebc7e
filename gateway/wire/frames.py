"""The frames of a link as records. Their bytes and the table of fields are in ``gateway.wire.codec``.

Times are milliseconds since 1970 of the sender's wall clock, except ``at_ms``: that is the pinger's own
affair. What version 1 wrote in another shape is translated in ``gateway.wire.version1``.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

from gateway.wire.limits import (
    CREDIT_BYTES_MAX,
    HAVE_STREAMS_MAX,
    REVOCATION_CHARS_MAX,
    REVOCATIONS_MAX,
    SAFE_INTEGER_MAX,
    TEXT_MAX,
    VERSIONS_MAX,
)
from outbox.blobref import BlobId
from outbox.chain import Checkpoint, Excerpt, Head
from outbox.ids import Epoch, MeshId, NodeId, Seq
from outbox.places import Written

Natural = Annotated[int, msgspec.Meta(ge=0, le=SAFE_INTEGER_MAX)]
"""A position or a time."""

Version = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Ask = Annotated[int, msgspec.Meta(ge=1, le=SAFE_INTEGER_MAX)]
Digest = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
"""SHA-256; base64 in JSON."""
Signature = Annotated[bytes, msgspec.Meta(min_length=64, max_length=64)]
"""Ed25519; base64 in JSON."""

Text = Annotated[str, msgspec.Meta(max_length=TEXT_MAX)]

Word = Annotated[str, msgspec.Meta(max_length=REVOCATION_CHARS_MAX)]
"""A record of the state room."""

VERSION = 2
"""What this gateway speaks."""

VERSIONS = (1, VERSION)
"""What it understands, oldest first: its own version and the one before it."""


class Filter(StrEnum):
    """Which bodies a reader wants. Headers always travel."""

    ALL = "all"
    """Every one: a seed, a mirror, a collector."""
    MINE = "mine"
    """Those of entries that name the reader, or everybody."""
    NONE = "none"
    """No more of this stream: it is read elsewhere."""


class Hello(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="t", tag="hello"):
    """First frame of each side. Fields of a newer version are ignored here: versions are not agreed yet."""

    v: Version
    """The sender's own version, in which it would like to speak."""
    versions: Annotated[tuple[Version, ...], msgspec.Meta(min_length=1, max_length=VERSIONS_MAX)]
    node: NodeId
    mesh: MeshId
    time_ms: Natural
    revocations: Annotated[tuple[Word, ...], msgspec.Meta(max_length=REVOCATIONS_MAX)] = ()
    """Signed words about keys that belong to the mesh no more; who does not know the field ignores it."""


class Stock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the sender has of one stream: its own outbox, or a verified copy of another one."""

    node: NodeId
    epoch: Epoch
    first: Annotated[int, msgspec.Meta(ge=1, le=SAFE_INTEGER_MAX)]
    """The oldest entry that can be had; one behind ``last`` when there is none."""
    last: Natural
    hash: Digest
    """Of the chain, after ``last``."""
    complete: bool = True
    """All bodies are here. A copy without them serves nobody; its head is told all the same."""
    signature: Signature | None = None
    """Of the checkpoint at ``last``, where the sender has one: two that disagree prove a fork."""

    @property
    def head(self) -> Head:
        """The same as a position in the chain."""
        return Head(self.epoch, Seq(self.last), self.hash)


class Have(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="have"):
    """What can be read from the sender. A later frame replaces what was said of the streams that it names."""

    streams: Annotated[tuple[Stock, ...], msgspec.Meta(max_length=HAVE_STREAMS_MAX)]
    more: bool = False
    """The first list goes on in the next frame."""


class Want(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="want"):
    """A reader's cursor in one stream: send what follows, as it is committed."""

    node: NodeId
    epoch: Epoch | None
    """None: from the beginning of the current epoch; ``after`` is 0 then."""
    after: Natural
    filter: Filter = Filter.ALL
    ask: Ask = 1
    """Numbers the wants of a link, upwards: entries say which one they follow, so late ones are known."""


class Entries(msgspec.Struct, frozen=True):
    """A page of a node's outbox."""

    node: NodeId
    page: Excerpt
    ask: int = 1


class Floor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="floor"):
    """The writer's signed checkpoint up to which it has forgotten its outbox: entries follow from there."""

    node: NodeId
    ask: Ask
    epoch: Epoch
    seq: Written
    hash: Digest
    signature: Signature

    def checkpoint(self, mesh: MeshId) -> Checkpoint:
        """The same as the chain knows it."""
        return Checkpoint(mesh, self.node, self.epoch, Seq(self.seq), self.hash, self.signature)


class Seen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="seen"):
    """What the reader has durably handled of the receiver's own outbox. It is no ACK of any event."""

    node: NodeId
    epoch: Epoch
    seq: Natural


class Credit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="credit"):
    """So many more bytes of payload may be sent: a frame may begin while some credit is left."""

    bytes: Annotated[int, msgspec.Meta(ge=1, le=CREDIT_BYTES_MAX)]


Sha256 = Annotated[BlobId, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


class BlobRefusal(StrEnum):
    """Why no bytes of a blob come."""

    FORBIDDEN = "forbidden"
    """Nothing names it that the asker may read; whether it is here is not said."""
    GONE = "gone"
    """The own outbox names it, and it is lost."""
    ABSENT = "absent"
    """It is not here yet, or no longer."""
    SHORT = "short"
    """It ends before."""


class BlobWant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="blob_want"):
    """Send so many bytes of a blob from there. Each want is answered in its turn; it is the credit, too."""

    sha256: Sha256
    offset: Natural
    bytes: Annotated[int, msgspec.Meta(ge=1, le=CREDIT_BYTES_MAX)]


class BlobPiece(msgspec.Struct, frozen=True):
    """Bytes of a blob."""

    sha256: BlobId
    offset: int
    total: int
    """Of the whole blob."""
    data: bytes


class BlobNone(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="blob_none"):
    """The next want is not answered with bytes."""

    sha256: Sha256
    code: BlobRefusal


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


Frame = (
    Hello
    | Have
    | Want
    | Floor
    | Entries
    | Seen
    | Credit
    | BlobWant
    | BlobPiece
    | BlobNone
    | Ping
    | Pong
    | Bye
)


def common_version(offered: tuple[int, ...]) -> int | None:
    """The newest version that both sides understand; None ends the link with ``bye version``."""
    return max(set(offered) & set(VERSIONS), default=None)
