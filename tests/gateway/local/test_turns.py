"""Turns against a peer that says exactly what a race makes a gateway say."""

import asyncio
from contextlib import suppress

import pytest
from websockets.asyncio.server import ServerConnection, serve

from gateway.api.answers import ExtendedAnswer, SentAnswer, SettledAnswer
from gateway.client.turns import Turns
from gateway.client.wire import Wire
from gateway.clock import Clock
from gateway.errors import Unreachable
from outbox.ids import AgentId, EventId
from tests.gateway.local.turnframes import frame
from tests.gateway.outboxes import event_id

FIRST, SECOND = (event_id(number) for number in (1, 2))


class Agent:
    """Its answers arrive, or get lost."""

    name = AgentId("coder")

    def __init__(self, *, lost: bool) -> None:
        self.lost = lost

    async def ack(self, event_id: str, *, lease_id: str | None, failed: str | None = None) -> SettledAnswer:
        if self.lost:
            raise Unreachable("no gateway answers")
        return SettledAnswer(EventId(event_id), duplicate=False)

    async def reply(self, event_id: str, payload: object, **_: object) -> SentAnswer:
        raise NotImplementedError

    async def send(self, to: str, payload: object, **fields: object) -> SentAnswer:
        raise NotImplementedError

    async def nack(self, event_id: str, lease_id: str, *, delay_ms: int) -> SettledAnswer:
        raise NotImplementedError

    async def extend(
        self, event_id: str, lease_id: str, *, lease_ms: int, eta_at: object, plan: str | None
    ) -> ExtendedAnswer:
        raise NotImplementedError


@pytest.mark.parametrize("lease_ms", [1, 30_000], ids=["lease run out", "lease live"])
@pytest.mark.parametrize("lost", [False, True], ids=["answered", "answer lost"])
async def test_what_was_answered_does_not_come_once_more(lost: bool, lease_ms: int) -> None:
    """The turn is on its way over a new connection while its answer arrives; unless that got lost."""
    connections = iter((1, 2))
    clock = Clock()
    subscribed, ended = asyncio.Event(), asyncio.Event()

    async def gateway(socket: ServerConnection) -> None:
        number = next(connections)
        await socket.recv()  # its credit
        if number == 1:
            await socket.send(frame(1, resumed=False, lease_ms=lease_ms))
            await socket.send(frame(3, resumed=False, lease_ms=lease_ms))
            return  # the connection breaks
        subscribed.set()
        await ended.wait()
        await socket.send(frame(1, resumed=True, lease_ms=lease_ms))
        await socket.send(frame(2, resumed=False, lease_ms=lease_ms))
        await socket.wait_closed()

    async with serve(gateway, "127.0.0.1", 0) as server, asyncio.timeout(60):
        wire = Wire(socket=None, url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", token=None)
        async with Turns(wire, Agent(lost=lost), "session", 4, clock) as turns:
            first, third = await anext(turns), await anext(turns)
            coming = asyncio.ensure_future(anext(turns))
            await subscribed.wait()
            for turn in (first, third):
                with suppress(Unreachable):
                    await turn.ok()
                answered_at_ms = clock.mono_ms()
                while clock.mono_ms() < answered_at_ms + 2:  # the shorter of the leases has run out
                    await asyncio.sleep(0)
            ended.set()
            second = await coming
    assert (first.event_id, second.event_id) == (FIRST, FIRST if lost else SECOND)
