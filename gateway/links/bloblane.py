"""Blobs over one link, beside the outboxes: at most one comes in at a time, and one piece waits to go out.

A piece goes out between two pages, so that a message waits for one piece at most.
"""

import asyncio

from gateway.links.blobpace import BlobPace
from gateway.links.blobwants import Asked, Wanted
from gateway.links.entitlement import may_fetch
from gateway.links.limits import (
    BLOB_ALLOWED_MS,
    BLOB_NAMINGS_MAX,
    BLOB_PIECE_BYTES,
    BLOB_WANT_BYTES,
)
from gateway.links.local import Local
from gateway.links.serving import Serving
from gateway.wire.frames import BlobNone, BlobPiece, BlobRefusal, BlobWant
from outbox.blobref import BlobId
from outbox.ids import NodeId

Answer = BlobPiece | BlobNone | None
"""Of a want; None: the link is gone."""


class BlobLane:
    """Both directions; the writer of the link is stirred when there is something to send."""

    def __init__(self, local: Local, peer: NodeId, serving: Serving, stirred: asyncio.Event) -> None:
        self._own = local.identity.node
        self._peer = peer
        self._keeper = local.blobs
        self._clock = local.clock
        self._view = local.view
        self._serving = serving
        self._stirred = stirred
        self._pace = BlobPace()
        self._asked = Asked()
        self._wants_out: list[BlobWant] = []
        self._taking: BlobId | None = None
        self._answers: asyncio.Queue[Answer] = asyncio.Queue()
        self._unwritten = 0
        """Bytes in the queue: what came and was not taken counts as under way; so the queue is bounded."""
        self._wanted = Wanted()
        self._came = asyncio.Event()
        self._out: BlobPiece | BlobNone | None = None
        self._taken = asyncio.Event()
        self._allowed: tuple[BlobId, int] | None = None
        self._closed = False

    # --- what we ask for

    def begin(self, sha256: BlobId) -> None:
        """Take in one blob."""
        self._taking = sha256
        self._answers = asyncio.Queue()
        self._unwritten = 0
        if self._closed:
            self._answers.put_nowait(None)

    def end(self) -> None:
        """Nothing more of it is asked for."""
        self._taking = None

    def ask(self, sha256: BlobId, offset: int, size: int) -> int:
        """Ask for what follows ``offset`` of a blob of ``size``, as far as the window allows; up to where."""
        while offset < size and self._asked.bytes + self._unwritten < self._pace.window:
            want = BlobWant(sha256, offset, min(BLOB_WANT_BYTES, size - offset))
            self._asked.ask(want, self._clock.mono_ms())
            self._wants_out.append(want)
            offset += want.bytes
        self._stirred.set()
        return offset

    async def answer(self) -> Answer:
        """The next of what was asked for."""
        answer = await self._answers.get()
        if isinstance(answer, BlobPiece):
            self._unwritten -= len(answer.data)
        return answer

    def hear(self, frame: BlobWant | BlobPiece | BlobNone) -> None:
        """What the peer says of blobs. Raises CreditOverrun, BadFrame."""
        match frame:
            case BlobWant():
                self._wanted.want(frame)
                self._came.set()
            case BlobPiece():
                self._on_piece(frame)
            case BlobNone():
                self._on_none(frame)

    def _on_piece(self, piece: BlobPiece) -> None:
        took_ms = self._asked.came(piece, self._clock.mono_ms())
        if took_ms is not None:
            self._pace.answered(took_ms)
        if piece.sha256 == self._taking:
            self._unwritten += len(piece.data)
            self._answers.put_nowait(piece)

    def _on_none(self, none: BlobNone) -> None:
        self._asked.refused(none)
        if none.sha256 == self._taking:
            self._answers.put_nowait(none)

    def close(self) -> None:
        """The link is gone."""
        self._closed = True
        self._answers.put_nowait(None)

    # --- what we are asked for

    async def serve(self) -> None:
        """Read ahead one piece, until cancelled."""
        while True:
            while not self._wanted:
                self._came.clear()
                await self._came.wait()
            self._out = await self._next()
            self._taken.clear()
            self._stirred.set()
            await self._taken.wait()

    async def _next(self) -> BlobPiece | BlobNone:
        sha256, offset, size = self._wanted.next(BLOB_PIECE_BYTES)
        row = self._keeper.index.blob(sha256)
        if not self._may_fetch(sha256):
            refusal = BlobRefusal.FORBIDDEN
        elif row is None:
            refusal = BlobRefusal.GONE if self._is_own(sha256) else BlobRefusal.ABSENT
        elif data := await self._keeper.disk.read(sha256, offset, size):
            self._wanted.sent(len(data))
            return BlobPiece(sha256, offset, row.bytes, data)
        else:
            refusal = BlobRefusal.SHORT
        self._wanted.refuse()
        return BlobNone(sha256, refusal)

    def _may_fetch(self, sha256: BlobId) -> bool:
        now_ms = self._clock.mono_ms()
        if self._allowed is not None and self._allowed[0] == sha256 and now_ms < self._allowed[1]:
            return True
        namings = self._keeper.index.naming(sha256, BLOB_NAMINGS_MAX)
        if not may_fetch(self._peer, namings, self._mirrors):
            return False
        self._allowed = (sha256, now_ms + BLOB_ALLOWED_MS)
        return True

    def _mirrors(self, stream: NodeId) -> bool:
        """Whether the peer keeps a copy: by its admission it may, and it reads all of the stream."""
        return self._view().reads_all(self._peer) and self._serving.reads_all(stream)

    def _is_own(self, sha256: BlobId) -> bool:
        return any(
            naming.source == self._own for naming in self._keeper.index.naming(sha256, BLOB_NAMINGS_MAX)
        )

    # --- what goes out

    def take_wants(self) -> list[BlobWant]:
        """What we ask for, to be sent now."""
        wants, self._wants_out = self._wants_out, []
        return wants

    def take_piece(self) -> BlobPiece | BlobNone | None:
        """What we answer, to be sent now."""
        out, self._out = self._out, None
        if out is not None:
            self._taken.set()
        return out
