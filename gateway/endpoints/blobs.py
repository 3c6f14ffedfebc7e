"""HTTP routes for blobs: upload, gone on with after a break; download of any stretch; what is here.

Bodies are streamed in pieces and never held in memory. A blob's name is its hash, so an upload needs no
session: ``HEAD`` says how much has come, and ``PUT`` with ``Content-Range`` goes on there (RFC 9110 section
14.5).
"""

from collections.abc import AsyncIterator

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from auth.scopes import Admin
from auth.scopes import Scope as Principal
from gateway.api.blobs import BlobAnswer, BlobsAnswer, MissingRow, blob_row
from gateway.blobs.keeper import BlobKeeper, Incoming
from gateway.blobs.limits import PIECE_BYTES
from gateway.endpoints.actors import need_admin
from gateway.endpoints.answers import json
from gateway.endpoints.bodies import NoQuery
from gateway.endpoints.desk import LocalDesk
from gateway.endpoints.errors import BadRequest, NotOctets
from gateway.endpoints.guard import principal_of
from gateway.endpoints.limits import ROWS_MAX
from gateway.endpoints.ranges import Part, part_of, range_of
from gateway.endpoints.reading import query_of
from outbox.blobref import OCTETS, BlobId, blob_id
from outbox.errors import NotFound

OFFSET = "Upload-Offset"
"""How much of an upload is here, as in the drafts for resumable uploads (and tus) it is called."""


class BlobRoutes:
    """Whoever may speak here may upload; a download needs an event that names the blob."""

    def __init__(self, desk: LocalDesk) -> None:
        self._desk = desk

    @property
    def _keeper(self) -> BlobKeeper:
        return self._desk.blobs

    def routes(self) -> list[Route]:
        """Paths and methods."""
        one = "/v1/blobs/{sha256}"
        return [
            Route("/v1/blobs", self.blobs, methods=["GET"]),
            Route("/v1/blobs", self.post, methods=["POST"]),
            Route(one, self.put, methods=["PUT"]),
            Route(one, self.get, methods=["GET", "HEAD"]),
        ]

    async def blobs(self, request: Request) -> Response:
        """What is here, and what is awaited."""
        query_of(request, NoQuery)
        need_admin(principal_of(request))
        disk = self._keeper.disk
        here, size, awaited = await self._desk.lookups.ask(
            lambda reader: (reader.blobs()[:ROWS_MAX], reader.blob_bytes(), reader.missing_blobs(ROWS_MAX))
        )
        missing = [
            MissingRow(row.sha256, row.bytes, disk.partial_size(row.sha256), row.source, row.awaited)
            for row in awaited
        ]
        return json(BlobsAnswer([blob_row(row) for row in here], size, missing))

    async def post(self, request: Request) -> Response:
        """Upload what has no name yet, in one go: 201 with its name."""
        query_of(request, NoQuery)
        _need_octets(request)
        async with self._keeper.unnamed(self._desk.clock.entropy(8).hex()) as incoming:
            await _pour(request, incoming)
            kept = await incoming.keep()
        return json(BlobAnswer(kept.sha256, kept.bytes), 201)

    async def put(self, request: Request) -> Response:
        """Upload a blob, or the next part of one: 201 when it is whole, 202 with the offset before."""
        query_of(request, NoQuery)
        _need_octets(request)
        sha256 = blob_id(request.path_params["sha256"])
        part = part_of(request.headers.get("content-range")) or _whole(request)
        if (kept := await self._keeper.have(sha256)) is not None:
            return _unread(json(BlobAnswer(kept.sha256, kept.bytes)))
        async with self._keeper.coming(sha256, part.total, afresh=part.first == 0) as incoming:
            incoming.need_offset(part.first)
            await _pour(request, incoming)
            if not incoming.whole:
                return Response(status_code=202, headers={OFFSET: str(incoming.offset)})
            kept = await incoming.keep()
        return json(BlobAnswer(kept.sha256, kept.bytes), 201)

    async def get(self, request: Request) -> Response:
        """Download a blob or a stretch of it; HEAD tells its size, or how much of an upload is here."""
        query_of(request, NoQuery)
        sha256 = blob_id(request.path_params["sha256"])
        row = self._desk.reader.blob(sha256)
        if request.method == "HEAD":
            return self._head(sha256, None if row is None else row.bytes)
        if row is None or not self._may_read(principal_of(request), sha256):
            raise NotFound(
                f"blob {sha256} is not here for you", hint="an event that names it has to come first"
            )
        stretch = range_of(request.headers.get("range"), row.bytes)
        first, end = stretch or (0, row.bytes)
        headers = {
            "Accept-Ranges": "bytes",
            "Content-Length": str(end - first),
            "Content-Disposition": "attachment",
            "X-Content-Type-Options": "nosniff",
            "ETag": f'"{sha256}"',
        }
        if stretch is not None:
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{row.bytes}"
        status = 200 if stretch is None else 206
        return StreamingResponse(self._pieces(sha256, first, end), status, headers, OCTETS)

    def _head(self, sha256: BlobId, size: int | None) -> Response:
        if size is not None:
            return Response(headers={"Content-Length": str(size), "ETag": f'"{sha256}"'}, media_type=OCTETS)
        return Response(status_code=404, headers={OFFSET: str(self._keeper.disk.partial_size(sha256))})

    def _may_read(self, principal: Principal, sha256: BlobId) -> bool:
        return isinstance(principal, Admin) or principal.name in self._desk.reader.blob_agents(sha256)

    async def _pieces(self, sha256: BlobId, first: int, end: int) -> AsyncIterator[bytes]:
        while first < end:
            piece = await self._keeper.disk.read(sha256, first, min(PIECE_BYTES, end - first))
            if not piece:
                return  # it was let go of meanwhile: the client sees that bytes are missing
            yield piece
            first += len(piece)


async def _pour(request: Request, incoming: Incoming) -> None:
    """All of a body; when its sender goes away in the middle, what came stays."""
    held = bytearray()
    try:
        async for piece in request.stream():
            held += piece
            if len(held) >= PIECE_BYTES:
                await incoming.write(bytes(held))
                held.clear()
    except ClientDisconnect:
        await incoming.write(bytes(held))
        raise BadRequest("the upload was cut short", hint="ask with HEAD how much came, and go on") from None
    await incoming.write(bytes(held))


def _need_octets(request: Request) -> None:
    """A form of a web page cannot send this media type. Raises NotOctets."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != OCTETS:
        raise NotOctets(f"the body must be {OCTETS}")


def _whole(request: Request) -> Part:
    """An upload in one go says how long it is. Raises BadRequest."""
    length = request.headers.get("content-length")
    if length is None:
        raise BadRequest(
            "an upload under a name needs Content-Length", hint="or POST /v1/blobs without a name"
        )
    return Part(0, int(length), int(length))


def _unread(response: Response) -> Response:
    """The body was not needed, and may be long: the connection is worth less than reading it."""
    response.headers["Connection"] = "close"
    return response
