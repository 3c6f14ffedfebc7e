"""A hostile or clumsy peer at the pipe: an admitted node that speaks frames, or does not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from gateway.links.peering import PATHS
from gateway.wire.codec import decode, encode
from gateway.wire.frames import VERSION, VERSIONS, Bye, Credit, Filter, Frame, Have, Hello, Stock, Want
from gateway.wire.limits import FRAME_BYTES_MAX
from outbox.chain import Head, genesis
from outbox.ids import Epoch, MeshId, NodeId
from tests.mesh.knocking import Newcomer

CLOSED_WITHIN_S = 60.0
EPOCH = Epoch("000001-0123456789ab")
"""Of the outbox that a made-up peer has."""


@asynccontextmanager
async def open_socket(peer: Newcomer, room: str, host: str = "vps") -> AsyncIterator[ClientConnection]:
    """A socket to a gateway, opened with the peer's own renewed ticket."""
    answer = await peer.renew((room,))
    assert answer.status == 200, answer
    headers = peer.joiner.upgrade_headers(NodeId(host), str(answer.json["wsTicket"]), PATHS[room], 0)
    async with connect(
        f"ws://127.0.0.1:{peer.port}{PATHS[room]}",
        additional_headers=headers,
        compression=None,
        proxy=None,
        max_size=FRAME_BYTES_MAX,
        local_addr=(peer.source, 0),
        close_timeout=1,
    ) as socket:
        try:
            yield socket
        finally:
            socket.transport.resume_reading()
            socket.transport.abort()


@asynccontextmanager
async def open_pipe(peer: Newcomer, host: str = "vps", version: int = VERSION) -> AsyncIterator["Pipe"]:
    """The same for a link."""
    async with open_socket(peer, "pipe", host) as socket:
        yield Pipe(socket, peer, version)


class Pipe:
    """The peer's end of a link, and its own outbox."""

    def __init__(self, socket: ClientConnection, peer: Newcomer, version: int = VERSION) -> None:
        self.socket = socket
        self.version = version
        self.peer = peer
        self.mesh: MeshId = peer.pin.mesh
        self.node = NodeId(peer.name)
        self.epoch = EPOCH

    @property
    def genesis(self) -> Head:
        return genesis(self.mesh, self.node, self.epoch)

    async def send(self, *frames: Frame | bytes | str) -> None:
        for frame in frames:
            await self.socket.send(self._message(frame))

    def _message(self, frame: Frame | bytes | str) -> bytes | str:
        return frame if isinstance(frame, bytes | str) else encode(frame, self.version)

    async def greet(self, host: str = "vps", credit: int = 2**20) -> None:
        """Behave until the link is up."""
        versions = tuple(version for version in VERSIONS if version <= self.version)
        hello = Hello(self.version, versions, self.node, self.mesh, 0)
        have = Have((Stock(self.node, self.epoch, 1, 0, self.genesis.hash),))
        which = Filter.ALL if self.version == 1 else Filter.MINE
        await self.send(hello, have, Want(NodeId(host), None, 0, which))
        if self.version > 1:
            await self.send(Credit(credit))
            await self.next(Credit)

    async def next(self, kind: type[Frame]) -> Frame:
        """The next frame of that kind."""
        async with asyncio.timeout(CLOSED_WITHIN_S):
            while True:
                frame = decode(bytes(await self.socket.recv()), self.version)
                if isinstance(frame, kind):
                    return frame

    async def farewell(self) -> tuple[Bye | None, int]:
        """What the gateway said last, and the close code."""
        said: Bye | None = None
        async with asyncio.timeout(CLOSED_WITHIN_S):
            try:
                while True:
                    message = await self.socket.recv()
                    frame = decode(message if isinstance(message, bytes) else message.encode(), self.version)
                    said = frame if isinstance(frame, Bye) else said
            except ConnectionClosed as closed:
                return said, closed.rcvd.code if closed.rcvd is not None else 1006
