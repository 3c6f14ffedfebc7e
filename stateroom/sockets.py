"""A ``websockets`` client connection as the ``send`` and ``recv`` that a room wants."""

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK

from stateroom.outflow import Recv, Send


def send_of(socket: ClientConnection) -> Send:
    """Send one binary frame; ConnectionError when the peer is gone."""

    async def send(frame: bytes) -> None:
        try:
            await socket.send(frame)
        except ConnectionClosed as error:
            raise ConnectionError(str(error)) from None

    return send


def recv_of(socket: ClientConnection) -> Recv:
    """The next frame; None after a clean close, else ConnectionError. A text frame comes as empty bytes."""

    async def recv() -> bytes | None:
        try:
            frame = await socket.recv()
        except ConnectionClosedOK:
            return None
        except ConnectionClosed as error:
            raise ConnectionError(str(error)) from None
        return frame if isinstance(frame, bytes) else b""

    return recv
