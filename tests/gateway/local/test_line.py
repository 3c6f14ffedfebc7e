"""One socket of an agent against a peer that answers as it is told."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from websockets.asyncio.server import ServerConnection, serve

from gateway.api.answers import SettledAnswer
from gateway.client import line as line_module
from gateway.client.agent import AgentClient
from gateway.client.line import Line
from gateway.client.turns import Turns
from gateway.client.wire import Wire
from gateway.clock import Clock
from gateway.errors import Denied, TimedOut
from outbox.ids import AgentId, EventId
from tests.gateway.local.turnframes import frame

CODER = AgentId("coder")


@asynccontextmanager
async def peer(gateway: Callable[[ServerConnection], Awaitable[None]]) -> AsyncIterator[Wire]:
    """A wire to somebody who speaks as this gateway."""
    async with serve(gateway, "127.0.0.1", 0) as server, asyncio.timeout(60):
        yield Wire(socket=None, url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", token=None)


async def frames(socket: ServerConnection) -> list[dict[str, object]]:
    """Those of the next message."""
    return [msgspec.json.decode(text) for text in (await socket.recv()).splitlines()]


async def test_each_request_waits_for_as_long_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answered ones between them neither end the wait of the others nor make it longer."""
    monkeypatch.setattr(line_module, "REQUEST_WITHIN_S", 0.5)

    async def gateway(socket: ServerConnection) -> None:
        while True:
            for asked in await frames(socket):
                if asked["ack"] == "told":
                    await socket.send(msgspec.json.encode({"ok": asked["reqId"]}), text=True)

    async with peer(gateway) as wire:
        line = await Line.open(wire, CODER)
        for _ in range(2):
            asks = [asyncio.ensure_future(line.ask({"ack": name})) for name in ("lost", "told", "lost")]
            await asyncio.wait(asks)
            assert [type(ask.exception()) for ask in asks] == [TimedOut, type(None), TimedOut]
        await line.close()


async def test_room_for_the_next_turn_goes_out_with_the_end_of_the_last() -> None:
    """And one grant is enough for all that end together."""
    heard: asyncio.Queue[list[dict[str, object]]] = asyncio.Queue()

    async def gateway(socket: ServerConnection) -> None:
        assert await frames(socket) == [{"credit": 2}]
        for number in (1, 2):
            await socket.send(frame(number, resumed=False, lease_ms=30_000))
        heard.put_nowait(await frames(socket))
        await socket.wait_closed()

    async with peer(gateway) as wire:
        agent = AgentClient(wire, CODER, Clock())
        turns = agent.turns("session", credit=2)
        taken = [await anext(turns), await anext(turns)]
        ends = [asyncio.ensure_future(turn.ok()) for turn in taken]
        said = await heard.get()
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        await agent.aclose()
    assert [next(iter(each)) for each in said] == ["ack", "ack", "credit"]
    assert said[2] == {"credit": 2}


class Slow(AgentClient):
    """Its answers come when they are let."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, CODER, Clock())
        self.answered = asyncio.Event()

    async def ack(self, event_id: str, **_: object) -> SettledAnswer:  # type: ignore[override]
        await self.answered.wait()
        return SettledAnswer(EventId(event_id), duplicate=False)


async def test_what_is_being_ended_does_not_come_once_more() -> None:
    """Its end is on its way on another connection while this one brings what the session holds."""
    connections = iter((1, 2))

    async def gateway(socket: ServerConnection) -> None:
        await socket.recv()  # its credit
        if next(connections) == 1:
            await socket.send(frame(1, resumed=False, lease_ms=30_000))
            return  # the connection breaks
        await socket.send(frame(1, resumed=True, lease_ms=30_000))
        await socket.send(frame(2, resumed=False, lease_ms=30_000))
        await socket.wait_closed()

    async with peer(gateway) as wire:
        agent = Slow(wire)
        async with Turns(wire, agent, "session", 4, Clock()) as turns:
            first = await anext(turns)
            ending = asyncio.ensure_future(first.ok())
            second = await anext(turns)
            agent.answered.set()
            await ending
    assert second.event_id != first.event_id


@pytest.mark.parametrize(("said", "retryable"), [({"retryable": True}, True), ({}, False)])
async def test_a_refusal_is_as_final_as_the_gateway_says(said: dict[str, bool], retryable: bool) -> None:
    """Of a request, and of the turns; a gateway that says nothing of it means that it is final."""
    error = {"code": "storage_full", "message": "no space left", "hint": "free some", **said}

    async def gateway(socket: ServerConnection) -> None:
        for asked in await frames(socket):
            await socket.send(msgspec.json.encode({"error": error | {"reqId": asked["reqId"]}}), text=True)
        await socket.send(msgspec.json.encode({"error": error}), text=True)
        await socket.wait_closed()

    async with peer(gateway) as wire:
        line = await Line.open(wire, CODER)
        refused = []
        for asking in (line.ask({"ack": "x"}), line.turn()):
            with pytest.raises(Denied) as caught:
                await asking
            refused.append((caught.value.wire_code, caught.value.hint, caught.value.is_retryable))
        await line.close()
    assert refused == [("storage_full", "free some", retryable)] * 2
