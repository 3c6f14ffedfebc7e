"""The subscribe socket: credit, leases, answers, bad frames, replaced sessions."""

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gateway.endpoints import subscribe
from gateway.endpoints.limits import SOCKET_CREDIT_MAX, SOCKET_REQUESTS_MAX
from gateway.endpoints.turn_sockets import REPLACED, RESET
from outbox.records import TurnState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.gateway.local.conftest import LocalNode


@asynccontextmanager
async def subscribed(
    node: "LocalNode", name: str = "bob", session: str | None = "s1", *, lines: bool = False
) -> "AsyncIterator[ClientConnection]":
    query = f"stream=agents/{name}/inbox" + (f"&session={session}" if session else "")
    query += "&lines=true" if lines else ""
    headers = {"Authorization": f"Bearer {node.token(name)}"}
    async with unix_connect(
        str(node.home.socket), f"ws://localhost/v1/subscribe?{query}", additional_headers=headers
    ) as socket:
        yield socket


async def tell(socket: ClientConnection, **frame: object) -> None:
    await socket.send(json.dumps(frame))


async def hear(socket: ClientConnection) -> Any:
    async with asyncio.timeout(60):
        return json.loads(await socket.recv())


async def ask(socket: ClientConnection, **frame: object) -> Any:
    await tell(socket, reqId="r", **frame)
    return await hear(socket)


async def send(node: "LocalNode", count: int = 1) -> list[str]:
    async with node.client() as gateway:
        jen = gateway.agent("jen")
        return [(await jen.send("bob", f"m{number}")).event_id for number in range(count)]


async def test_turns_come_under_credit_and_no_more(node: "LocalNode") -> None:
    events = await send(node, 3)
    async with subscribed(node) as socket:
        await tell(socket, credit=2)
        turns = [(await hear(socket))["deliver"] for _ in range(2)]
        assert [turn["event"]["eventId"] for turn in turns] == events[:2]
        assert [(turn["deliveryCount"], turn["resumed"], turn["leaseMs"]) for turn in turns] == [
            (1, False, 30_000)
        ] * 2
        answer = await ask(socket, ack=events[0], leaseId=turns[0]["leaseId"])
        assert answer == {"ok": "r", "eventId": events[0], "duplicate": False}
        assert node.reader.count_received() == {TurnState.DONE: 1, TurnState.LEASED: 1, TurnState.QUEUED: 1}


async def test_the_event_goes_through_as_it_stands_in_the_outbox(node: "LocalNode") -> None:
    [event] = await send(node)
    async with subscribed(node) as socket:
        await tell(socket, credit=1)
        async with asyncio.timeout(60):
            frame = await socket.recv()
    (row,) = node.reader.ledger(event)
    assert isinstance(frame, str)
    assert row.body.decode() in frame


async def test_every_verb_is_answered_in_order(node: "LocalNode") -> None:
    events = await send(node, 3)
    async with subscribed(node) as socket:
        await tell(socket, credit=3, reqId=0)
        frames = [await hear(socket) for _ in range(4)]
        assert {"ok": 0} in frames
        leases = {f["deliver"]["event"]["eventId"]: f["deliver"]["leaseId"] for f in frames if "deliver" in f}
        await tell(socket, extend=events[0], leaseId=leases[events[0]], leaseMs=90_000, reqId=1)
        await tell(socket, reply=events[0], leaseId=leases[events[0]], text="yes", reqId=2)
        await tell(socket, nack=events[1], leaseId=leases[events[1]], delayMs=60_000, reqId=3)
        await tell(socket, ack=events[2], leaseId=leases[events[2]], outcome="failed", error="tired", reqId=4)
        extended, replied, nacked, acked = [await hear(socket) for _ in range(4)]
    assert extended == {"ok": 1, "eventId": events[0], "leaseMs": 90_000}
    assert (replied["ok"], replied["to"]) == (2, {"agent": "jen", "node": "vps"})
    assert nacked == {"ok": 3, "eventId": events[1], "duplicate": False}
    assert acked == {"ok": 4, "eventId": events[2], "duplicate": False}
    states = [row for event in events for row in node.reader.ledger(event)]
    assert [row.state for row in states] == [
        TurnState.DONE,
        TurnState.QUEUED,
        TurnState.DONE,
    ]


async def hear_lines(socket: ClientConnection, count: int) -> list[Any]:
    frames: list[Any] = []
    async with asyncio.timeout(60):
        while len(frames) < count:
            message = await socket.recv()
            assert isinstance(message, str)
            frames += [json.loads(line) for line in message.split("\n")]
    return frames


async def test_many_frames_in_a_message_are_answered_each_once(node: "LocalNode") -> None:
    asked = 3 * SOCKET_REQUESTS_MAX
    async with subscribed(node, lines=True) as bob, subscribed(node, "jen", lines=True) as jen:
        for first in range(0, asked, 1000):
            lines = [
                json.dumps({"enqueue": {"to": "bob", "text": f"m{number}"}, "reqId": number})
                for number in range(first, min(asked, first + 1000))
            ]
            await jen.send("\n".join([*lines, "{}"]))
        frames = await hear_lines(jen, asked + -(-asked // 1000))
        answered = [frame["ok"] for frame in frames if "ok" in frame]
        assert answered == list(range(asked))
        assert len(frames) - len(answered) == -(-asked // 1000), "each wrong frame has its error"
        await tell(bob, credit=100)
        turns = [frame["deliver"] for frame in await hear_lines(bob, 100)]
        acks = [
            {"ack": turn["event"]["eventId"], "leaseId": turn["leaseId"], "reqId": number}
            for number, turn in enumerate(turns)
        ]
        await bob.send("\n".join(map(json.dumps, acks)))
        assert [frame["ok"] for frame in await hear_lines(bob, 100)] == list(range(100))
    assert node.reader.count_received()[TurnState.DONE] == 100


async def test_what_is_enqueued_on_a_socket_is_the_sockets_agents(node: "LocalNode") -> None:
    async with subscribed(node, "jen") as socket:
        sent = await ask(socket, enqueue={"to": "bob", "text": "hi"})
        assert (sent["ok"], sent["to"], sent["duplicate"]) == ("r", {"agent": "bob", "node": "vps"}, False)
        (row,) = node.reader.obligations(sent["eventId"])
        assert row.from_agent == "jen"
        refused = await ask(socket, enqueue={"to": "bobb", "text": "hi"})
        assert (refused["error"]["code"], refused["error"]["reqId"]) == ("unknown_recipient", "r")
        refused = await ask(socket, enqueue={"to": "bob", "text": "hi", "agent": "bob"})
        assert refused["error"]["code"] == "invalid_request"


async def test_a_bad_frame_gets_its_error_and_the_socket_stays(node: "LocalNode") -> None:
    bad = [
        ("{", "invalid_request"),
        ("[]", "invalid_request"),
        ('{"credit":0}', "invalid_request"),
        ('{"credit":-1}', "invalid_request"),
        ('{"credit":true}', "invalid_request"),
        ('{"credit":1.0}', "invalid_request"),
        ('{"credit":1e99}', "invalid_request"),
        ('{"credit":NaN}', "invalid_request"),
        (json.dumps({"credit": SOCKET_CREDIT_MAX + 1}), "invalid_request"),
        ('{"credit":1,"ack":"evt_1"}', "invalid_request"),
        ('{"credit":1,"colour":"red"}', "invalid_request"),
        ("{}", "invalid_request"),
        ('{"ack":"evt_1"}', "invalid_id"),
        ('{"ack":"evt_' + "0" * 32 + '"}', "not_found"),
        ('{"nack":"evt_' + "0" * 32 + '"}', "invalid_request"),
        ('{"reply":"evt_' + "0" * 32 + '"}', "invalid_request"),
        ('{"ack":"' + "x" * 400_000 + '"}', "too_large"),
    ]
    async with subscribed(node) as socket:
        for text, code in bad:
            await socket.send(text)
            assert (await hear(socket))["error"]["code"] == code, text[:60]
        await socket.send('{"credit":"many","reqId":7}')
        assert (await hear(socket))["error"]["reqId"] == 7
        [event] = await send(node)
        await tell(socket, credit=1)
        assert (await hear(socket))["deliver"]["event"]["eventId"] == event


async def test_unused_credit_is_bounded(node: "LocalNode") -> None:
    async with subscribed(node) as socket:
        assert await ask(socket, credit=SOCKET_CREDIT_MAX) == {"ok": "r"}
        assert (await ask(socket, credit=1))["error"]["code"] == "invalid_request"


async def test_a_session_gets_its_turn_back_under_the_same_lease(node: "LocalNode") -> None:
    [event] = await send(node)
    async with subscribed(node) as socket:
        await tell(socket, credit=1)
        first = (await hear(socket))["deliver"]
    async with subscribed(node) as socket:
        again = (await hear(socket))["deliver"]
        assert again == first | {"resumed": True}
        answer = await ask(socket, ack=event, leaseId=first["leaseId"])
        assert answer["ok"] == "r"


async def test_another_session_does_not_get_a_leased_turn(node: "LocalNode") -> None:
    first, second = await send(node, 2)
    async with subscribed(node, session="s1") as one, subscribed(node, session="s2") as two:
        await tell(one, credit=1)
        held = (await hear(one))["deliver"]
        await tell(two, credit=5)
        assert (await hear(two))["deliver"]["event"]["eventId"] == second
        refused = await ask(two, ack=first, leaseId="lease_of_nobody")
        assert refused["error"]["code"] == "conflict"
        assert held["event"]["eventId"] == first


async def test_the_newer_socket_of_a_session_takes_over(node: "LocalNode") -> None:
    async with subscribed(node) as old, subscribed(node) as new:
        with pytest.raises(ConnectionClosed) as closed:
            await hear(old)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == REPLACED
        [event] = await send(node)
        await tell(new, credit=1)
        assert (await hear(new))["deliver"]["event"]["eventId"] == event


async def test_a_new_engine_asks_its_sockets_to_subscribe_again(node: "LocalNode") -> None:
    async with subscribed(node) as socket:
        node.turns.reset()
        with pytest.raises(ConnectionClosed) as closed:
            await hear(socket)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == RESET


async def test_who_sends_while_the_disk_is_full_is_told_so_before_the_socket_is_reset(
    node: "LocalNode",
) -> None:
    """Without the answer it looks as if the gateway were gone, and the client asks for half a minute."""
    database = node.journal.database
    ((pages,),) = database.rows("PRAGMA page_count")
    async with subscribed(node) as socket:
        database.rows(f"PRAGMA max_page_count = {pages}")
        refused = await ask(socket, enqueue={"to": "bob", "text": "x" * 100_000})
        assert (refused["error"]["code"], refused["error"]["retryable"]) == ("storage_full", True)
        with pytest.raises(ConnectionClosed) as closed:
            await hear(socket)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == RESET


async def test_a_binary_frame_closes_the_socket(node: "LocalNode") -> None:
    async with subscribed(node) as socket:
        await socket.send(b'{"credit":1}')
        with pytest.raises(ConnectionClosed) as closed:
            await hear(socket)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1003


async def test_who_does_not_live_here_has_no_socket(node: "LocalNode") -> None:
    for stream, session in (
        ("agents/far/inbox", "s"),
        ("agents/bob/inbox", "a%20b"),
        ("agents/bob/inbox", "x" * 65),
    ):
        with pytest.raises(InvalidStatus) as refused:
            await unix_connect(
                str(node.home.socket), f"ws://localhost/v1/subscribe?stream={stream}&session={session}"
            )
        assert refused.value.response.status_code in {400, 404}


async def test_a_reader_that_takes_nothing_is_owed_no_more_than_its_credit(node: "LocalNode") -> None:
    await send(node, 5)
    async with subscribed(node, session=None) as socket:
        await tell(socket, credit=2)
        await tell(socket, credit=1)
        turns = [await hear(socket) for _ in range(3)]
        assert all("deliver" in turn for turn in turns)
        assert (await ask(socket, ack=turns[0]["deliver"]["event"]["eventId"], leaseId="none"))["error"]
        assert node.reader.count_received() == {TurnState.LEASED: 3, TurnState.QUEUED: 2}


async def test_who_takes_nothing_is_let_go(node: "LocalNode", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribe, "SEND_WITHIN_S", 0.2)
    gone, close = asyncio.Event(), node.turns.close

    def closed(subscriber: str) -> None:
        close(subscriber)
        gone.set()

    monkeypatch.setattr(node.turns, "close", closed)
    async with node.client() as gateway:
        for _ in range(16):  # more than the buffers of a socket and of both ends hold
            await gateway.agent("jen").send("bob", "x" * 200_000)
    async with subscribed(node) as socket:
        socket.transport.pause_reading()
        await tell(socket, credit=16)
        async with asyncio.timeout(20):
            await gone.wait()
        socket.transport.abort()


async def test_who_is_quiet_for_long_is_not(node: "LocalNode", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribe, "SEND_WITHIN_S", 0.02)
    loop = asyncio.get_running_loop()
    async with subscribed(node) as socket:
        until_s = loop.time() + 0.2
        while loop.time() < until_s:
            assert "error" in await ask(socket, ack="evt_00000000000000000000000000", leaseId="l")
