"""A page of an outbox as header and payload of an ``entries`` frame, and back."""

from typing import Annotated

import msgspec

from gateway.wire.frames import (
    Ask,
    BlobNone,
    BlobWant,
    Bye,
    Credit,
    Digest,
    Entries,
    Floor,
    Have,
    Hello,
    Natural,
    Ping,
    Pong,
    Seen,
    Sha256,
    Signature,
    Want,
)
from gateway.wire.limits import ENTRIES_MAX, PAYLOAD_BYTES_MAX
from outbox.chain import Checkpoint, Entry, Excerpt, Stub
from outbox.errors import BadCheckpoint, BadFrame, BrokenChain, TooLarge
from outbox.ids import Epoch, MeshId, NodeId, Seq
from outbox.limits import BODY_BYTES_MAX, HEADER_BYTES_MAX, SEQ_MAX

HeaderSize = Annotated[int, msgspec.Meta(ge=0, le=HEADER_BYTES_MAX)]
BodySize = Annotated[int, msgspec.Meta(ge=0, le=BODY_BYTES_MAX)]
Sizes = tuple[tuple[HeaderSize, BodySize | None], ...]
First = Annotated[int, msgspec.Meta(ge=1, le=SEQ_MAX - ENTRIES_MAX)]

HASH_BYTES = 32
"""What stands in the payload for a body that did not travel."""


class WireCheckpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A checkpoint without what the frame says already: node, epoch and the last position."""

    mesh: MeshId
    hash: Digest
    signature: Signature


class EntriesHeader(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="entries", omit_defaults=True
):
    """The header of an ``entries`` frame."""

    node: NodeId
    epoch: Epoch
    first: First = msgspec.field(name="from")
    ask: Ask
    sizes: Annotated[Sizes, msgspec.Meta(min_length=1, max_length=ENTRIES_MAX)]
    """Bytes of each header and body; a body of null is there as its SHA-256."""
    checkpoint: WireCheckpoint
    before: Digest | None = None
    """The chain's hash before the first entry; nothing is believed for it, but it makes a fork provable."""


class BlobHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="blob"):
    """The header of a ``blob`` frame; its bytes are the payload."""

    sha256: Sha256
    offset: Natural
    total: Natural


Header = (
    Hello
    | Have
    | Want
    | Floor
    | EntriesHeader
    | Seen
    | Credit
    | BlobWant
    | BlobHeader
    | BlobNone
    | Ping
    | Pong
    | Bye
)
"""What the JSON of a frame can be."""


def split_page(frame: Entries) -> tuple[EntriesHeader, list[bytes]]:
    """Header and payload for a page, the payload as the bytes of entries in turn.

    Raises TooLarge when it does not fit into a frame, BrokenChain when it is empty or has holes,
    BadCheckpoint when it does not end in its checkpoint.
    """
    node, page = frame.node, frame.page
    entries, checkpoint = page.entries, page.checkpoint
    if len(entries) > ENTRIES_MAX:
        raise TooLarge(f"a page of {len(entries)} entries does not fit into a frame")
    first = entries[0].seq if entries else Seq(0)
    if not entries or [entry.seq for entry in entries] != list(range(first, first + len(entries))):
        raise BrokenChain("a page that is empty or has holes cannot travel")
    if (checkpoint.node, checkpoint.epoch, checkpoint.seq) != (node, page.epoch, entries[-1].seq):
        raise BadCheckpoint("the checkpoint is not that of the page's last entry")
    parts: list[bytes] = []
    sizes: list[tuple[int, int | None]] = []
    for entry in entries:
        body, size = (entry.body, len(entry.body)) if isinstance(entry, Entry) else (entry.body_hash, None)
        parts += (entry.header, body)
        sizes.append((len(entry.header), size))
    if sum(map(len, parts)) > PAYLOAD_BYTES_MAX:
        raise TooLarge(f"a page of more than {PAYLOAD_BYTES_MAX} bytes does not fit into a frame")
    header = EntriesHeader(
        node=node,
        epoch=page.epoch,
        first=first,
        ask=frame.ask,
        sizes=tuple(sizes),
        checkpoint=WireCheckpoint(checkpoint.mesh, checkpoint.hash, checkpoint.signature),
        before=page.before or None,
    )
    return header, parts


def join_page(header: EntriesHeader, payload: memoryview) -> Entries:
    """The frame of a decoded header and its payload. Raises BadFrame unless the sizes add up."""
    entries: list[Entry | Stub] = []
    at = 0
    for place, (header_size, body_size) in enumerate(header.sizes):
        middle = at + header_size
        end = middle + (HASH_BYTES if body_size is None else body_size)
        made = Entry if body_size is not None else Stub
        entries.append(made(Seq(header.first + place), bytes(payload[at:middle]), bytes(payload[middle:end])))
        at = end
    if at != len(payload):
        raise BadFrame("the sizes of an entries frame do not add up to its payload")
    sent = header.checkpoint
    checkpoint = Checkpoint(sent.mesh, header.node, header.epoch, entries[-1].seq, sent.hash, sent.signature)
    page = Excerpt(header.epoch, tuple(entries), checkpoint, header.before or b"")
    return Entries(header.node, page, header.ask)


def page_bytes(page: Excerpt) -> int:
    """What a page takes of a link's credit: the payload of its frame."""
    return sum(
        len(entry.header) + (len(entry.body) if isinstance(entry, Entry) else HASH_BYTES)
        for entry in page.entries
    )
