"""The watch socket: every newly accepted row once, acknowledged by nobody."""

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from websockets.asyncio.client import unix_connect

from outbox.records import TurnState

if TYPE_CHECKING:
    from tests.gateway.local.conftest import LocalNode


async def test_new_rows_are_pushed_once_and_stay_in_the_inbox(node: "LocalNode") -> None:
    async with node.client() as gateway:
        jen, bob = gateway.agent("jen"), gateway.agent("bob")
        await jen.send("bob", "before")
        async with unix_connect(str(node.home.socket), "ws://localhost/v1/watch?agent=bob") as socket:
            first = await jen.send("bob", "one")
            await bob.ack(first.event_id)
            await jen.send("jen", "not for bob")
            second = await jen.send("bob", {"n": 2})
            async with asyncio.timeout(60):
                items = [json.loads(await socket.recv())["item"] for _ in range(2)]
    assert [(item["eventId"], item["from"], item["payload"]) for item in items] == [
        (first.event_id, "jen", {"text": "one"}),
        (second.event_id, "jen", {"n": 2}),
    ]
    assert node.reader.count_received() == {TurnState.QUEUED: 3, TurnState.DONE: 1}


async def test_the_clients_watch_shows_what_came_while_the_gateway_was_away(
    stopped: "LocalNode", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.client.agent.ROWS_AT_ONCE", 2)  # more came than one answer brings
    async with stopped.serving(), stopped.client() as gateway:
        await gateway.add_agent("jen")
        await gateway.add_agent("bob")
    async with stopped.client() as gateway, asyncio.timeout(60):
        jen, rows = gateway.agent("jen"), gateway.agent("bob").watch()
        async with stopped.serving():
            first = asyncio.ensure_future(anext(rows))
            while not first.done():
                await jen.send("bob", "are you looking?")
                await asyncio.wait({first}, timeout=0.05)
        seen = [(await first).event_id]
        async with stopped.serving():
            missed = [(await jen.send("bob", "while you were away")).event_id for _ in range(7)]
            while seen[-1] != missed[-1]:
                seen.append((await anext(rows)).event_id)
    assert seen[-7:] == missed
    assert len(set(seen)) == len(seen)
