"""A page of an outbox as header and payload of an ``entries`` frame, and back."""

from typing import Annotated

import msgspec

from gateway.wire.frames import Digest
from gateway.wire.limits import ENTRIES_MAX, PAYLOAD_BYTES_MAX, SAFE_INTEGER_MAX
from outbox.chain import Checkpoint, Entry, Page
from outbox.errors import BadCheckpoint, BadFrame, BrokenChain, TooLarge
from outbox.ids import Epoch, MeshId, NodeId, Seq
from outbox.limits import BODY_BYTES_MAX, HEADER_BYTES_MAX

HeaderSize = Annotated[int, msgspec.Meta(ge=0, le=HEADER_BYTES_MAX)]
BodySize = Annotated[int, msgspec.Meta(ge=0, le=BODY_BYTES_MAX)]
Sizes = Annotated[tuple[tuple[HeaderSize, BodySize], ...], msgspec.Meta(min_length=1, max_length=ENTRIES_MAX)]


class WireCheckpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A checkpoint without what the frame says already: node, epoch and the last position."""

    mesh: MeshId
    hash: Digest
    signature: Annotated[bytes, msgspec.Meta(min_length=64, max_length=64)]


class EntriesHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="entries"):
    """The header of an ``entries`` frame."""

    node: NodeId
    epoch: Epoch
    first: Annotated[int, msgspec.Meta(ge=1, le=SAFE_INTEGER_MAX)] = msgspec.field(name="from")
    sizes: Sizes
    checkpoint: WireCheckpoint


def split_page(node: NodeId, page: Page) -> tuple[EntriesHeader, bytes]:
    """Header and payload for a page.

    Raises TooLarge when it does not fit into a frame, BrokenChain when it is empty or has holes,
    BadCheckpoint when it does not end in its checkpoint.
    """
    entries, checkpoint = page.entries, page.checkpoint
    if len(entries) > ENTRIES_MAX:
        raise TooLarge(f"a page of {len(entries)} entries does not fit into a frame")
    first = entries[0].seq if entries else Seq(0)
    if not entries or [entry.seq for entry in entries] != list(range(first, first + len(entries))):
        raise BrokenChain("a page that is empty or has holes cannot travel")
    if (checkpoint.node, checkpoint.epoch, checkpoint.seq) != (node, page.epoch, entries[-1].seq):
        raise BadCheckpoint("the checkpoint is not that of the page's last entry")
    header = EntriesHeader(
        node=node,
        epoch=page.epoch,
        first=first,
        sizes=tuple((len(entry.header), len(entry.body)) for entry in entries),
        checkpoint=WireCheckpoint(checkpoint.mesh, checkpoint.hash, checkpoint.signature),
    )
    if _payload_bytes(header) > PAYLOAD_BYTES_MAX:
        raise TooLarge(f"a page of more than {PAYLOAD_BYTES_MAX} bytes does not fit into a frame")
    return header, b"".join(part for entry in entries for part in (entry.header, entry.body))


def join_page(header: EntriesHeader, payload: memoryview) -> Page:
    """The page of a decoded header and its payload. Raises BadFrame unless the sizes add up."""
    if _payload_bytes(header) != len(payload):
        raise BadFrame("the sizes of an entries frame do not add up to its payload")
    entries: list[Entry] = []
    at = 0
    for place, (header_size, body_size) in enumerate(header.sizes):
        middle, end = at + header_size, at + header_size + body_size
        entries.append(
            Entry(Seq(header.first + place), bytes(payload[at:middle]), bytes(payload[middle:end]))
        )
        at = end
    sent = header.checkpoint
    checkpoint = Checkpoint(sent.mesh, header.node, header.epoch, entries[-1].seq, sent.hash, sent.signature)
    return Page(header.epoch, tuple(entries), checkpoint)


def _payload_bytes(header: EntriesHeader) -> int:
    return sum(header_size + body_size for header_size, body_size in header.sizes)
