"""One face for both ends of a WebSocket: accepted by our server or dialled by us."""

from typing import Protocol

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from gateway.links.errors import SocketClosed


class Socket(Protocol):
    """Binary messages in both directions."""

    async def send(self, message: bytes) -> None:
        """Raises SocketClosed."""
        ...

    async def receive(self) -> bytes:
        """The next message. Raises SocketClosed."""
        ...

    async def close(self, code: int, reason: str) -> None:
        """Close it; closing again does nothing."""
        ...


class AcceptedSocket:
    """A socket that somebody opened to us, after ``accept``."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket

    async def send(self, message: bytes) -> None:
        """Raises SocketClosed."""
        try:
            await self._websocket.send({"type": "websocket.send", "bytes": message})
        except (WebSocketDisconnect, RuntimeError, OSError) as error:  # RuntimeError: sent after the end
            raise SocketClosed(f"the socket is closed: {error}") from None

    async def receive(self) -> bytes:
        """The next message; text is taken as its UTF-8 bytes. Raises SocketClosed."""
        message = await self._websocket.receive()
        if message["type"] != "websocket.receive":
            raise SocketClosed(f"closed with {message.get('code')}")
        data = message.get("bytes")
        return bytes(data) if data is not None else str(message.get("text", "")).encode()

    async def close(self, code: int, reason: str) -> None:
        """Close it; closing again does nothing."""
        if self._websocket.application_state is WebSocketState.CONNECTED:
            try:
                await self._websocket.close(code, reason[:120])
            except (WebSocketDisconnect, RuntimeError, OSError):
                return


class DialledSocket:
    """A socket that we opened."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def send(self, message: bytes) -> None:
        """Raises SocketClosed."""
        try:
            await self._connection.send(message)
        except ConnectionClosed as error:
            raise SocketClosed(f"the socket is closed: {error}") from None

    async def receive(self) -> bytes:
        """The next message; text is taken as its UTF-8 bytes. Raises SocketClosed."""
        try:
            message = await self._connection.recv()
        except ConnectionClosed as error:
            raise SocketClosed(f"the socket is closed: {error}") from None
        return message if isinstance(message, bytes) else message.encode()

    async def close(self, code: int, reason: str) -> None:
        """Close it; closing again does nothing."""
        await self._connection.close(code, reason[:120])
