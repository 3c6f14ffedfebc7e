"""Files to and from the gateway: streamed, gone on with after a break, checked against their hash."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from gateway.api.blobs import BlobAnswer
from gateway.blobs.errors import BlobWrong
from gateway.client.limits import BACKOFF_CAP_S, BACKOFF_FIRST_S, PIECE_BYTES
from gateway.client.wire import Wire
from gateway.clock import Clock
from gateway.errors import Denied, Unreachable
from outbox.blobref import OCTETS, BlobId, BlobRef
from outbox.errors import NotFound
from outbox.retry import full_jitter

Progress = Callable[[int], None]
"""Is told how many bytes more are done: hashed, then sent."""

OFFSET = "Upload-Offset"


class Blobs:
    """Uploads and downloads of one client."""

    def __init__(self, wire: Wire, clock: Clock) -> None:
        self._wire = wire
        self._clock = clock

    async def upload(
        self,
        path: Path,
        *,
        content_type: str = OCTETS,
        within_s: float = 0.0,
        progress: Progress = lambda _: None,
    ) -> BlobRef:
        """Bring a file to the gateway, unless it is there; what was cut short is gone on with.

        A gateway that is away is asked again for ``within_s`` after the last byte that it took.
        Raises OSError, Denied, Unreachable, TimedOut.
        """
        sha256, size = await asyncio.to_thread(_hashed, path)
        failures, last_offset, deadline_ms = 0, -1, self._clock.mono_ms() + int(within_s * 1000)
        while True:
            try:
                offset = await self.offset(sha256)
                if offset is None:
                    break
                if offset > last_offset:
                    failures, last_offset = 0, offset
                    deadline_ms = self._clock.mono_ms() + int(within_s * 1000)
                await self._send(path, sha256, offset, size, progress)
                break
            except Unreachable:
                failures += 1
                if self._clock.mono_ms() >= deadline_ms:
                    raise
            fraction = self._clock.fraction()
            await asyncio.sleep(full_jitter(failures, fraction, first=BACKOFF_FIRST_S, cap=BACKOFF_CAP_S))
        return BlobRef(sha256, size, content_type)

    async def pour(self, file: BinaryIO, *, content_type: str = OCTETS) -> BlobRef:
        """Bring what can be read but once, a pipe say; it cannot be gone on with."""
        headers = {"Content-Type": OCTETS}
        async with self._wire.exchange("POST", "/v1/blobs", headers=headers, data=_read(file, 0)) as answer:
            kept = msgspec.json.decode(await answer.read(), type=BlobAnswer)
        return BlobRef(kept.sha256, kept.bytes, content_type)

    async def offset(self, sha256: BlobId) -> int | None:
        """How many bytes of an upload the gateway has; None when it has all."""
        async with self._wire.exchange("HEAD", f"/v1/blobs/{sha256}", headers={}) as answer:
            if answer.ok:
                return None
            if answer.status != 404:
                raise Denied("refused", f"HEAD was answered with {answer.status}", hint="is the token right?")
            return int(answer.headers.get(OFFSET, "0"))

    async def ref(self, sha256: BlobId) -> BlobRef:
        """A blob that is here, with its size. Raises NotFound."""
        async with self._wire.exchange("HEAD", f"/v1/blobs/{sha256}", headers={}) as answer:
            if not answer.ok:
                raise NotFound(f"blob {sha256} is not here", hint="list them with: gateway blob list")
            return BlobRef(sha256, int(answer.headers["Content-Length"]))

    async def read(self, ref: BlobRef, start: int = 0) -> AsyncGenerator[bytes, None]:
        """The bytes of a blob from ``start`` on, checked against its hash when all were read.

        Raises Denied, Unreachable, TimedOut; BlobWrong at the end.
        """
        found, headers = hashlib.sha256(), {"Range": f"bytes={start}-"} if start else {}
        if start >= ref.bytes > 0:
            return
        size = 0
        async with self._wire.exchange("GET", f"/v1/blobs/{ref.sha256}", headers=headers) as answer:
            async for piece in answer.content.iter_chunked(PIECE_BYTES):
                found.update(piece)
                size += len(piece)
                yield piece
        if not start and found.hexdigest() != ref.sha256:
            raise BlobWrong(f"{size} bytes came that do not hash to {ref.sha256}", hint="try again")

    async def _send(self, path: Path, sha256: BlobId, offset: int, size: int, progress: Progress) -> None:
        headers = {"Content-Type": OCTETS, "Content-Length": str(size - offset)}
        if offset == size > 0:
            headers["Content-Range"] = f"bytes */{size}"
        elif offset:
            headers["Content-Range"] = f"bytes {offset}-{size - 1}/{size}"
        progress(offset)
        with path.open("rb") as file:
            sent = _read(file, offset, progress)
            async with self._wire.exchange("PUT", f"/v1/blobs/{sha256}", headers=headers, data=sent):
                pass


def _hashed(path: Path) -> tuple[BlobId, int]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return BlobId(digest), file.tell()


async def _read(file: BinaryIO, offset: int, progress: Progress = lambda _: None) -> AsyncIterator[bytes]:
    if offset:
        file.seek(offset)
    while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
        yield piece
        progress(len(piece))
