"""The bytes of a link: one WebSocket binary message is one frame.

::

    offset  size      content
    0       4         H, the length of the JSON header, big-endian
    4       H         the header: a JSON object in UTF-8, its type in ``t``
    4 + H   the rest  the payload: of ``entries`` header and body bytes in turn; of ``blob`` its bytes

``FRAMES`` is the table of all frames and ``HISTORY`` that of the versions; ``docs/PROTOCOL.md`` shows both.

Positions and times are integers from 0 to 2^53 - 1; ``from``, ``first`` and ``ask`` begin at 1. Epoch
``null`` with ``after`` 0 means "from the beginning of the current epoch". ``hash`` (32 bytes) and
``signature`` (64) are base64 (RFC 4648 section 4). Names of nodes and epochs follow the envelope's rules.
An entries frame's checkpoint stands at position ``from + len(sizes) - 1`` of its node and epoch. A receiver
refuses unknown types and, outside ``hello`` and ``bye``, unknown fields: versions are agreed in ``hello``.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple, assert_never

import msgspec

from gateway.wire.frames import (
    VERSION,
    BlobNone,
    BlobPiece,
    BlobWant,
    Bye,
    Credit,
    Entries,
    Floor,
    Frame,
    Have,
    Hello,
    Ping,
    Pong,
    Seen,
    Want,
)
from gateway.wire.limits import BLOB_PIECE_BYTES_MAX, FRAME_BYTES_MAX, HEADER_BYTES_MAX, TEXT_MAX
from gateway.wire.pages import BlobHeader, EntriesHeader, Header, join_page, split_page
from gateway.wire.version1 import Header1, newer, older
from outbox.errors import BadFrame, InvalidId
from outbox.ids import Epoch, epoch, node_id


class FrameRule(NamedTuple):
    """One row of the table of frames."""

    frame: str
    fields: str
    sent_by: str
    meaning: str


FRAMES = (
    FrameRule(
        "hello",
        "v, versions[], node, mesh, time_ms, revocations[]",
        "both, first",
        "who I am, what I understand, what my clock says, whose keys were revoked",
    ),
    FrameRule(
        "have",
        "streams[{node, epoch, first, last, hash, complete, signature}], more",
        "writer",
        "what can be read here: my outbox, and verified copies of others; again as they grow",
    ),
    FrameRule(
        "want",
        "node, epoch or null, after, filter, ask",
        "reader",
        "send what follows in this stream, as it commits; `filter` is `all`, `mine` or `none`",
    ),
    FrameRule(
        "floor",
        "node, ask, epoch, seq, hash, signature",
        "writer",
        "I have forgotten my outbox up to this checkpoint; who has read none of it begins there",
    ),
    FrameRule(
        "entries",
        "node, epoch, from, ask, sizes[[header, body]…], checkpoint {mesh, hash, signature}, before",
        "writer",
        "whole batches up to a checkpoint; a body of `null` is there as its SHA-256; `before` is a hash",
    ),
    FrameRule(
        "seen",
        "node, epoch, seq",
        "reader",
        "your outbox is durably handled up to here; no ACK, and said once a second at most",
    ),
    FrameRule("credit", "bytes", "reader", "so many more bytes of payload may come"),
    FrameRule(
        "blob_want",
        "sha256, offset, bytes",
        "reader",
        "send so many bytes of this blob from there: the only credit that there is for blobs",
    ),
    FrameRule("blob", "sha256, offset, total", "writer", "bytes of the blob, as the payload, at most 64 KiB"),
    FrameRule(
        "blob_none",
        "sha256, code",
        "writer",
        "the next want gets no bytes: `forbidden`, `gone`, `absent` or `short`",
    ),
    FrameRule("ping", "at_ms", "both", "are you there?"),
    FrameRule("pong", "at_ms, time_ms", "both", "yes, and this is my clock"),
    FrameRule("bye", "code, hint", "both, last", "why I close the link"),
)

HISTORY = (
    (1, "2026-11", "The two outboxes of a link, whole pages; `seen` returns a window of 4 MiB."),
    (
        2,
        "2026-11",
        "Several streams, `filter`, bodies as hashes, `ask`, `credit`, `before`, copies, `floor`, blobs.",
    ),
)

_LENGTH_BYTES = 4
_MESH = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)

_decoder: msgspec.json.Decoder[Header] = msgspec.json.Decoder(Header)
_decoder1: msgspec.json.Decoder[Header1] = msgspec.json.Decoder(Header1)
_encode_json = msgspec.json.Encoder().encode


def encode(frame: Frame, version: int = VERSION) -> bytes:
    """The message that carries a frame.

    Raises TooLarge, BrokenChain, BadCheckpoint for an unfit page, BadFrame for what the version cannot say.
    """
    header: Header
    header, payload = _split(frame)
    text = _encode_json(older(header) if version == 1 else header)
    return b"".join((len(text).to_bytes(_LENGTH_BYTES), text, *payload))


def _split(frame: Frame) -> tuple[Header, Sequence[bytes]]:
    match frame:
        case Entries():
            return split_page(frame)
        case BlobPiece():
            return BlobHeader(frame.sha256, frame.offset, frame.total), (frame.data,)
        case _:
            return frame, ()


def decode(message: bytes, version: int = VERSION) -> Frame:
    """The frame in a message. Raises BadFrame for whatever is not exactly one, and nothing else."""
    text, payload = _cut(message)
    try:
        header = newer(_decoder1.decode(text)) if version == 1 else _decoder.decode(text)
        _check_ids(header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidId) as error:
        raise BadFrame(f"not a link frame: {error}"[:TEXT_MAX]) from None  # it may hold what came
    if isinstance(header, EntriesHeader):
        return join_page(header, payload)
    if isinstance(header, BlobHeader):
        return _piece(header, payload)
    if payload:
        raise BadFrame("only frames of entries and blobs have a payload")
    return header


def _piece(header: BlobHeader, payload: memoryview) -> BlobPiece:
    if not 0 < len(payload) <= BLOB_PIECE_BYTES_MAX or header.offset + len(payload) > header.total:
        raise BadFrame(f"a blob of {header.total} bytes has no {len(payload)} bytes at {header.offset}")
    return BlobPiece(header.sha256, header.offset, header.total, bytes(payload))


def _cut(message: bytes) -> tuple[memoryview, memoryview]:
    if len(message) > FRAME_BYTES_MAX:
        raise BadFrame(f"a frame of {len(message)} bytes is above {FRAME_BYTES_MAX}")
    whole = memoryview(message)
    header_bytes = int.from_bytes(whole[:_LENGTH_BYTES])
    end = _LENGTH_BYTES + header_bytes
    if header_bytes > HEADER_BYTES_MAX or end > len(message):
        raise BadFrame(f"a header of {header_bytes} bytes is not in a frame of {len(message)}")
    return whole[_LENGTH_BYTES:end], whole[end:]


def _check_ids(header: Header) -> None:
    """Raises InvalidId for a name that breaks its rule."""
    match header:  # what comes most often stands first
        case EntriesHeader():
            _check_place(header.node, header.epoch)
            _check_mesh(header.checkpoint.mesh)
        case Ping() | Pong() | Credit() | BlobWant() | BlobHeader() | BlobNone() | Bye():
            pass
        case Have():
            for stock in header.streams:
                _check_place(stock.node, stock.epoch)
        case Want(epoch=None):
            node_id(header.node)
            if header.after:
                raise InvalidId("epoch", "null")
        case Want() | Seen() | Floor():
            _check_place(header.node, header.epoch)
        case Hello():
            node_id(header.node)
            _check_mesh(header.mesh)
        case _:
            assert_never(header)


def _check_place(node: str, at: Epoch | None) -> None:
    node_id(node)
    epoch(at or "")


def _check_mesh(text: str) -> None:
    if not _MESH.fullmatch(text):
        raise InvalidId("mesh", text)
