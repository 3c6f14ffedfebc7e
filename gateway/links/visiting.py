"""A socket to another gateway for a while, for whoever is no running gateway: who joins, and who collects."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from gateway.api.problem import refusal_of
from gateway.errors import Unreachable
from gateway.links.peering import PATHS
from gateway.links.tickets import Opening
from gateway.rooms import Rooms
from gateway.wire.limits import FRAME_BYTES_MAX
from outbox.ids import NodeId
from stateroom.outflow import Recv
from stateroom.sockets import recv_of, send_of

_AGAIN = "run the same command again: nothing is lost"


@asynccontextmanager
async def visit(url: str, opening: Opening, channel: str) -> AsyncIterator[ClientConnection]:
    """The socket of one channel at a gateway's address.

    Raises Denied with the code of a refusal, and Unreachable, also when it breaks while it is used.
    """
    address = url.replace("http", "ws", 1) + PATHS[channel]
    try:
        async with connect(
            address,
            additional_headers=opening.headers,
            compression=None,
            proxy=None,
            max_size=FRAME_BYTES_MAX,
        ) as socket:
            yield socket
    except InvalidStatus as refused:
        raise refusal_of(url, refused.response.status_code, bytes(refused.response.body or b"")) from None
    except (OSError, WebSocketException) as error:
        raise Unreachable(f"the connection to {url} broke ({type(error).__name__})", hint=_AGAIN) from None


async def replicate(
    rooms: Rooms, socket: ClientConnection, peer: NodeId, enough: asyncio.Event, recv: Recv | None = None
) -> None:
    """Replicate the state room until there is ``enough`` of it or the socket is gone, whichever comes first.

    The rooms are open. ``recv`` is heard in place of the socket's own.
    """
    async with asyncio.TaskGroup() as tasks:
        parts = {
            tasks.create_task(rooms.state.serve(send_of(socket), recv or recv_of(socket), peer=peer)),
            tasks.create_task(enough.wait()),
        }
        await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        if enough.is_set():
            await rooms.state.settled()
        for part in parts:
            part.cancel()
