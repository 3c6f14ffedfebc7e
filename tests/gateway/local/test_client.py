"""The client against real nodes that stop, restart and lose answers."""

import asyncio
import os
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.client import GatewayClient, Turn
from gateway.clock import Clock
from gateway.courier.limits import CourierLimits
from gateway.errors import Denied, HomeError, TimedOut, Unreachable
from gateway.home import Home
from outbox.errors import TooLarge
from outbox.kinds import Outcome
from outbox.records import DeliveryState, TurnState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.gateway.local.conftest import LocalNode

ROOT = Path(__file__).parents[3]


async def next_turn(turns: "AsyncIterator[Turn]") -> Turn:
    async with asyncio.timeout(60):
        return await anext(turns)


async def test_a_conversation_by_turns(node: "LocalNode") -> None:
    async with node.client() as operator, GatewayClient(url=node.url, token=node.token("bob")) as bobs:
        jen, bob = operator.agent("jen"), bobs.agent("bob")
        sent = await jen.send("bob", "what is the answer?", type="question", thread="t1", priority=1)
        async with bob.turns("bob-1") as turns, jen.turns() as answers:
            turn = await next_turn(turns)
            assert (turn.text, turn.sender, turn.event.type) == ("what is the answer?", "jen", "question")
            await turn.reply({"answer": 42})
            answer = await next_turn(answers)
            assert (answer.event.corr_id, answer.event.thread_id) == (sent.event_id, "t1")
            assert (answer.payload, answer.text) == ({"answer": 42}, '{"answer":42}')
            await answer.ok()
        found = await jen.wait_for(sent.event_id, "reply", 5)
    assert found.state in {"replied", "processed"}
    assert node.reader.count_received() == {TurnState.DONE: 2}


async def test_the_program_of_the_readme_answers_what_is_asked_and_no_answer(node: "LocalNode") -> None:
    """It runs as it stands there. Two that answer every answer would talk until the gateway refuses."""
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    environ = os.environ | {
        "GATEWAY_HOME": str(node.home.root),
        "XDG_RUNTIME_DIR": str(node.home.runtime.parent),
    }
    async with node.client() as gateway:
        await gateway.add_agent("architect")
        await gateway.add_agent("coder")
        running = await asyncio.create_subprocess_exec(sys.executable, "-c", program, env=environ)
        try:
            async with gateway.agent("architect").turns("a") as turns:
                told = await next_turn(turns)
                assert told.in_reply_to is None
                await told.reply("Good.")
                asked = await gateway.agent("architect").send("coder", "What next?")
                back = await next_turn(turns)  # an answer to "Good." would come first
                assert (back.in_reply_to, back.text) == (asked.event_id, "On it: What next?")
                await back.ok()
            assert running.returncode is None
        finally:
            running.kill()
            await running.wait()


async def test_a_home_that_is_none_is_said_at_once(short_dir: "Path") -> None:
    """Without it a program would wait for a gateway that can never be there."""
    nowhere = Home.of({"GATEWAY_HOME": str(short_dir / "nowhere")})
    with pytest.raises(HomeError, match="is no home of a node") as refused:
        GatewayClient.of_home(nowhere)
    assert "gateway init" in refused.value.hint


async def test_what_a_turn_makes_an_agent_send_names_it_as_its_cause(node: "LocalNode") -> None:
    async with node.client() as gateway:
        jen, bob = gateway.agent("jen"), gateway.agent("bob")
        sent = await jen.send("bob", "tell jen")
        async with bob.turns("b") as turns, jen.turns("j") as told:
            turn = await next_turn(turns)
            on_its_way = await turn.send("jen", "you wanted to know")
            heard = await next_turn(told)
            await turn.ok()
            await heard.ok()
    assert (heard.event_id, heard.event.trace.hops) == (on_its_way.event_id, 1)
    assert heard.event.thread_id == sent.thread_id


async def test_failed_and_given_back_turns(node: "LocalNode") -> None:
    async with node.client() as gateway:
        jen, bob = gateway.agent("jen"), gateway.agent("bob")
        sent = await jen.send("bob", "try")
        async with bob.turns("s") as turns:
            await (await next_turn(turns)).nack()
            turn = await next_turn(turns)
            assert turn.delivery_count == 2
            await turn.extend(60_000, eta_at=datetime(2026, 11, 27, 12, tzinfo=UTC), plan="try once more")
            await turn.failed("no idea")
        (shown, *_) = await gateway.deliveries()
    row = node.reader.obligations(sent.event_id)[0]
    assert row is not None
    assert (row.outcome, row.error) == (Outcome.FAILED, "no idea")
    assert (shown.eta_at_ms, shown.plan_summary) == (1_795_780_800_000, "try once more")


async def test_never_more_turns_in_hand_than_credit(node: "LocalNode") -> None:
    async with node.client() as gateway:
        jen, bob = gateway.agent("jen"), gateway.agent("bob")
        for number in range(6):
            await jen.send("bob", f"m{number}")
        async with bob.turns("s", credit=2) as turns:
            hand = [await next_turn(turns), await next_turn(turns)]
            texts = [turn.text for turn in hand]
            while len(texts) < 6:
                await hand.pop(0).ok()
                hand.append(await next_turn(turns))
                texts.append(hand[-1].text)
                assert node.reader.count_received()[TurnState.LEASED] <= 2
    assert texts == [f"m{number}" for number in range(6)]


async def test_turns_and_their_leases_survive_a_restart(stopped: "LocalNode") -> None:
    async with stopped.client() as gateway, asyncio.timeout(60):
        jen, bob = gateway.agent("jen"), gateway.agent("bob")
        async with bob.turns("run-1", credit=2) as turns:
            async with stopped.serving():
                await gateway.add_agent("jen")
                await gateway.add_agent("bob")
                first = (await jen.send("bob", "one")).event_id
                turn = await next_turn(turns)
            async with stopped.serving():
                second = (await jen.send("bob", "two")).event_id
                other = await next_turn(turns)
                assert (other.event_id, other.resumed) == (second, False), "the held turn is not dealt again"
                await turn.ok()
                await other.ok()
    assert turn.event_id == first


async def test_a_new_run_of_the_same_session_resumes(node: "LocalNode") -> None:
    async with node.client() as gateway:
        jen, bob = gateway.agent("jen"), gateway.agent("bob")
        await jen.send("bob", "one")
        async with bob.turns("run") as turns:
            lost = await next_turn(turns)
        async with bob.turns("run") as turns:
            again = await next_turn(turns)
            assert (again.resumed, again.lease_id, again.delivery_count) == (True, lost.lease_id, 1)
            await again.ok()


async def test_a_session_in_two_hands_ends_the_older(node: "LocalNode") -> None:
    async with node.client() as gateway:
        await gateway.agent("jen").send("bob", "x")
        async with gateway.agent("bob").turns("s") as old, gateway.agent("bob").turns("s") as new:
            held = await next_turn(old)
            again = await next_turn(new)
            assert (again.lease_id, again.resumed) == (held.lease_id, True)
            with pytest.raises(Denied) as ended:
                await next_turn(old)
    assert ended.value.wire_code == "session_replaced"


async def test_a_turn_that_was_dropped_comes_again_when_its_lease_ran_out(stopped: "LocalNode") -> None:
    stopped.limits = CourierLimits(lease_ms=100)
    async with stopped.serving(), stopped.client() as gateway:
        await gateway.add_agent("jen")
        await gateway.add_agent("bob")
        await gateway.agent("jen").send("bob", "x")
        async with gateway.agent("bob").turns("s", credit=1) as turns:
            first = await next_turn(turns)
            again = await next_turn(turns)
    assert (first.delivery_count, again.delivery_count) == (1, 2)


class LosingProxy:
    """Passes bytes on, and drops the connection instead of an answer, a few times; handshakes pass."""

    def __init__(self, upstream: "Path", losses: int) -> None:
        self._upstream = upstream
        self._losses = losses
        self.lost = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_unix_connection(str(self._upstream))
        with suppress(ConnectionError):
            async with asyncio.TaskGroup() as pumps:
                up = pumps.create_task(self._pump(reader, up_writer))
                await self._answers(up_reader, writer)
                up.cancel()
        writer.close()
        up_writer.close()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()

    async def _answers(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        sink.write(await source.read(65_536))
        while data := await source.read(65_536):
            if self.lost < self._losses:
                self.lost += 1
                return
            sink.write(data)
            await sink.drain()


async def test_a_lost_answer_never_sends_twice(node: "LocalNode") -> None:
    proxy = LosingProxy(node.home.socket, losses=3)
    path = node.home.runtime / "proxy.sock"
    async with await asyncio.start_unix_server(proxy.serve, str(path)), GatewayClient(socket=path) as gateway:
        sent = await gateway.agent("jen").send("bob", "once")
        await gateway.agent("bob").ack(sent.event_id)
    assert proxy.lost == 3
    assert sent.duplicate
    assert node.reader.count_deliveries() == {DeliveryState.PROCESSED: 1}
    assert node.reader.count_received() == {TurnState.DONE: 1}


async def test_what_is_too_large_is_refused_before_it_is_sent(node: "LocalNode") -> None:
    async with node.client() as gateway:
        with pytest.raises(TooLarge):
            await gateway.agent("jen").send("bob", "x" * 400_000)
        with pytest.raises(Denied) as refused:
            await gateway.agent("jen").send("bob", "x" * 300_000)
    assert refused.value.wire_code == "too_large"


async def test_no_gateway_is_unreachable_and_no_answer_in_time_stays_queued(stopped: "LocalNode") -> None:
    async with stopped.client() as gateway:
        with pytest.raises(Unreachable, match="no gateway answers"):
            await gateway.status()
        with pytest.raises(Unreachable):
            await gateway.agent("jen").send("bob", "x", within_s=0)
        async with stopped.serving():
            await gateway.add_agent("jen")
            sent = await gateway.agent("jen").send("far", "x")
            with pytest.raises(TimedOut, match="waiting_for_owner"):
                await gateway.agent("jen").wait_for(sent.event_id, "accepted", 0)


async def test_refusals_carry_the_gateways_code_and_hint(node: "LocalNode") -> None:
    async with GatewayClient(url=node.url, token="gwt_nobody") as stranger:
        with pytest.raises(Denied) as refused:
            await stranger.status()
        assert refused.value.wire_code == "unauthorized"
        with pytest.raises(Denied):
            await anext(stranger.agent("bob").turns())
    async with node.client() as gateway:
        with pytest.raises(Denied) as refused:
            await gateway.agent("jen").send("bobb", "x")
    assert (refused.value.wire_code, "bob" in refused.value.hint) == ("unknown_recipient", True)


async def test_a_full_disk_is_no_reason_to_give_up(node: "LocalNode") -> None:
    """On an agent's socket and for one of many over HTTP; under the same id it is sent once there is room."""
    database, text = node.journal.database, "x" * 100_000
    ((pages,),) = database.rows("PRAGMA page_count")
    ((most,),) = database.rows("PRAGMA max_page_count")
    async with node.client() as gateway, node.http("jen") as http:
        jen = gateway.agent("jen")
        database.rows(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(Denied) as refused:
            await jen.send("bob", text, id="once")
        many = await http.post("/v1/enqueue", json={"envs": [{"to": "bob", "text": text}]})
        database.rows(f"PRAGMA max_page_count = {most}")
        await jen.send("bob", text, id="once")
    assert (refused.value.wire_code, refused.value.is_retryable) == ("storage_full", True)
    (told,) = many.json()["results"]
    assert (told["error"]["code"], told["error"]["retryable"]) == ("storage_full", True)
    assert node.reader.count_received() == {TurnState.QUEUED: 1}


class Driven(Clock):
    """Only pauses take time, and each is as long as it may be."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def mono_ms(self) -> int:
        return int(self.passed_s * 1000)

    def fraction(self) -> float:
        return 0.999

    async def sleep(self, pause_s: float) -> None:
        self.passed_s += pause_s


async def test_without_a_gateway_it_gives_up_when_it_said_it_would(
    short_dir: "Path", monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Driven()
    monkeypatch.setattr("gateway.client.agent.asyncio.sleep", clock.sleep)
    async with GatewayClient(socket=short_dir / "none.sock", clock=clock) as gateway:
        with pytest.raises(Unreachable):
            await gateway.agent("jen").send("bob", "x", within_s=3)
    assert 2.9 < clock.passed_s < 3.01, "to the millisecond"
