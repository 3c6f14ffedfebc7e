"""What version 1 of the frames wrote in another shape, and how it maps onto the records of today.

A peer of version 1 reads and serves nothing but outboxes: one ``have`` and one ``want``, whole pages. Flow
control is ``seen`` there; ``credit`` does not exist. To be dropped with version 3.
"""

from typing import Annotated

import msgspec

from gateway.wire.frames import (
    BlobNone,
    BlobWant,
    Bye,
    Credit,
    Digest,
    Filter,
    Have,
    Hello,
    Natural,
    Ping,
    Pong,
    Seen,
    Stock,
    Want,
)
from gateway.wire.limits import ENTRIES_MAX
from gateway.wire.pages import BlobHeader, BodySize, EntriesHeader, First, Header, HeaderSize, WireCheckpoint
from outbox.errors import BadFrame
from outbox.ids import Epoch, NodeId

_Sizes = Annotated[
    tuple[tuple[HeaderSize, BodySize], ...], msgspec.Meta(min_length=1, max_length=ENTRIES_MAX)
]


class Have1(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="have"):
    """The head of the sender's own outbox."""

    node: NodeId
    epoch: Epoch
    seq: Natural
    hash: Digest


class Want1(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="want"):
    """The reader's cursor in the receiver's outbox."""

    node: NodeId
    epoch: Epoch | None
    after: Natural


class EntriesHeader1(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t", tag="entries"):
    """The header of an ``entries`` frame: all bodies travel."""

    node: NodeId
    epoch: Epoch
    first: First = msgspec.field(name="from")
    sizes: _Sizes
    checkpoint: WireCheckpoint


Header1 = Hello | Have1 | Want1 | EntriesHeader1 | Seen | Ping | Pong | Bye
"""Everything that version 1 knows."""


def older(frame: Header) -> Header1:
    """A frame as version 1 writes it. Raises BadFrame for what it cannot say."""
    match frame:
        case Have(streams=(stock,), more=False):
            return Have1(stock.node, stock.epoch, stock.last, stock.hash)
        case Want(filter=Filter.ALL, ask=1):
            return Want1(frame.node, frame.epoch, frame.after)
        case EntriesHeader(ask=1):
            sizes = tuple((head, body) for head, body in frame.sizes if body is not None)
            if len(sizes) == len(frame.sizes):
                return EntriesHeader1(frame.node, frame.epoch, frame.first, sizes, frame.checkpoint)
        case Hello() | Seen() | Ping() | Pong() | Bye():
            return frame
        case Have() | Want() | Credit() | EntriesHeader() | BlobWant() | BlobHeader() | BlobNone():
            pass
    raise BadFrame(f"version 1 has no such {type(frame).__name__.lower()}")


def newer(header: Header1) -> Header:
    """The same the other way round."""
    match header:
        case Have1():
            stock = Stock(header.node, header.epoch, 1, header.seq, header.hash)
            return Have((stock,))
        case Want1():
            return Want(header.node, header.epoch, header.after)
        case EntriesHeader1():
            return EntriesHeader(header.node, header.epoch, header.first, 1, header.sizes, header.checkpoint)
        case _:
            return header
