"""The bytes of a link: one WebSocket binary message is one frame.

::

    offset  size      content
    0       4         H, the length of the JSON header, big-endian
    4       H         the header: a JSON object in UTF-8, its type in ``t``
    4 + H   the rest  the payload: of ``entries`` header and body bytes in turn, verbatim; of all others empty

    t        fields                                        sent by      meaning
    hello    v, versions[], node, mesh, time_ms            both, first  who I am and what I understand
    have     node, epoch, seq, hash                        writer       the head of my own outbox
    want     node, epoch | null, after                     reader       send what follows, as it commits
    entries  node, epoch, from, sizes[[header, body]…],    writer       whole batches, up to a checkpoint
             checkpoint {mesh, hash, signature}
    seen     node, epoch, seq                              reader       durably handled; returns credit
    ping     at_ms                                         both         are you there?
    pong     at_ms, time_ms                                both         yes, and this is my clock
    bye      code, hint                                    both, last   why I close the link

Positions and times are integers from 0 to 2^53 - 1, ``from`` begins at 1. Epoch ``null`` with ``after`` 0
means "from the beginning of the current epoch". ``hash`` (32 bytes) and ``signature`` (64) are base64 (RFC
4648 section 4). Names of nodes and epochs follow the rules of the envelope.
An entries frame's checkpoint stands at position ``from + len(sizes) - 1`` of its node and epoch. A receiver
refuses unknown types and, outside ``hello`` and ``bye``, unknown fields: versions are agreed in ``hello``.

History:

- **1** (2026-11): all of the above.
"""

import re
from typing import assert_never

import msgspec

from gateway.wire.frames import Bye, Entries, Frame, Have, Hello, Ping, Pong, Seen, Want
from gateway.wire.limits import FRAME_BYTES_MAX, HEADER_BYTES_MAX
from gateway.wire.pages import EntriesHeader, join_page, split_page
from outbox.errors import BadFrame, InvalidId
from outbox.ids import epoch, node_id

_LENGTH_BYTES = 4
_MESH = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


_Header = Hello | Have | Want | EntriesHeader | Seen | Ping | Pong | Bye

_decoder: msgspec.json.Decoder[_Header] = msgspec.json.Decoder(_Header)
_encode_json = msgspec.json.Encoder().encode


def encode(frame: Frame) -> bytes:
    """The message that carries a frame. Raises TooLarge, BrokenChain, BadCheckpoint for an unfit page."""
    header, payload = split_page(frame.node, frame.page) if isinstance(frame, Entries) else (frame, b"")
    text = _encode_json(header)
    return len(text).to_bytes(_LENGTH_BYTES) + text + payload


def decode(message: bytes) -> Frame:
    """The frame in a message. Raises BadFrame for whatever is not exactly one, and nothing else."""
    text, payload = _cut(message)
    try:
        header = _decoder.decode(text)
        _check_ids(header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidId) as error:
        raise BadFrame(f"not a link frame: {error}") from None
    if isinstance(header, EntriesHeader):
        return Entries(header.node, join_page(header, payload))
    if payload:
        raise BadFrame("only an entries frame has a payload")
    return header


def _cut(message: bytes) -> tuple[memoryview, memoryview]:
    if len(message) > FRAME_BYTES_MAX:
        raise BadFrame(f"a frame of {len(message)} bytes is above {FRAME_BYTES_MAX}")
    whole = memoryview(message)
    header_bytes = int.from_bytes(whole[:_LENGTH_BYTES])
    end = _LENGTH_BYTES + header_bytes
    if header_bytes > HEADER_BYTES_MAX or end > len(message):
        raise BadFrame(f"a header of {header_bytes} bytes is not in a frame of {len(message)}")
    return whole[_LENGTH_BYTES:end], whole[end:]


def _check_ids(header: _Header) -> None:
    """Raises InvalidId for a name that breaks its rule."""
    match header:
        case Hello():
            node_id(header.node)
            _check_mesh(header.mesh)
        case Want():
            node_id(header.node)
            if header.epoch is not None:
                epoch(header.epoch)
            elif header.after:
                raise InvalidId("epoch", "null")
        case Have() | Seen():
            node_id(header.node)
            epoch(header.epoch)
        case EntriesHeader():
            node_id(header.node)
            epoch(header.epoch)
            _check_mesh(header.checkpoint.mesh)
        case Ping() | Pong() | Bye():
            pass
        case _:
            assert_never(header)


def _check_mesh(text: str) -> None:
    if not _MESH.fullmatch(text):
        raise InvalidId("mesh", text)
