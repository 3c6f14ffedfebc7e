"""The simulated network: order, breaks, blocked directions, slow ones, full buffers."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, ConnectionClosedError, ConnectionClosedOK

from gateway.harness.sim.dice import Dice
from gateway.harness.sim.loop import make_loop
from gateway.harness.sim.network import Network, Weather
from gateway.harness.sim.timeline import Timeline
from gateway.harness.sim.wire import WireEnd


class Party:
    def __init__(self, bench: "Bench", name: str) -> None:
        self.name = name
        self.loop = make_loop(bench.timeline, lambda what, error: bench.stumbles.append((what, error)))
        self.ends: list[WireEnd] = []
        bench.network.join(self)

    def accept(self, channel: str, peer: str, end: WireEnd) -> None:
        self.ends.append(end)


class Bench:
    def __init__(self) -> None:
        self.timeline = Timeline()
        self.stumbles: list[Any] = []
        self.network = Network(self.timeline, Dice(1, "network"), Weather(10_000, 0))
        self.a, self.b = Party(self, "a"), Party(self, "b")

    def run(self, party: Party, make: Callable[[], Coroutine[Any, Any, Any]], within_s: float = 1.0) -> Any:
        task = party.loop.create_task(make())
        self.timeline.run_until(self.timeline.now_us + int(within_s * 1e6))
        return task.result()

    def connect(self) -> tuple[WireEnd, WireEnd]:
        near = self.run(self.a, lambda: self.network.dial(self.a, "b", "pipe"))
        return near, self.b.ends[-1]


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def send_all(end: WireEnd, messages: list[bytes]) -> None:
    for message in messages:
        await end.send(message)


async def receive(end: WireEnd, number: int) -> list[bytes]:
    return [await end.recv() for _ in range(number)]


def test_messages_come_in_their_order(bench: Bench) -> None:
    near, far = bench.connect()
    messages = [bytes([number]) for number in range(50)]
    bench.run(bench.a, lambda: send_all(near, messages))
    assert bench.run(bench.b, lambda: receive(far, 50)) == messages


def test_a_blocked_direction_holds_and_lets_go(bench: Bench) -> None:
    near, far = bench.connect()
    bench.network.block("a", "b")
    bench.run(bench.a, lambda: send_all(near, [b"1", b"2"]))
    waiting = bench.b.loop.create_task(receive(far, 2))
    bench.timeline.run_until(bench.timeline.now_us + 60_000_000)
    assert not waiting.done()
    bench.run(bench.b, lambda: send_all(far, [b"back"]))
    assert bench.run(bench.a, lambda: receive(near, 1)) == [b"back"]
    bench.network.open("a", "b")
    bench.timeline.run_until(bench.timeline.now_us + 100_000)
    assert waiting.result() == [b"1", b"2"]


def test_nobody_is_reached_through_a_blocked_direction_or_where_nobody_is(bench: Bench) -> None:
    bench.network.block("b", "a")
    with pytest.raises(TimeoutError):
        bench.run(bench.a, lambda: bench.network.dial(bench.a, "b", "pipe"), within_s=11)
    with pytest.raises(ConnectionRefusedError):
        bench.run(bench.a, lambda: bench.network.dial(bench.a, "c", "pipe"))


def test_a_close_comes_after_what_was_sent(bench: Bench) -> None:
    near, far = bench.connect()

    async def last_words() -> None:
        await near.send(b"1")
        await near.close(1000)

    bench.run(bench.a, last_words)
    assert bench.run(bench.b, lambda: receive(far, 1)) == [b"1"]
    with pytest.raises(ConnectionClosedOK):
        bench.run(bench.b, far.recv)
    with pytest.raises(ConnectionClosed):
        bench.run(bench.a, lambda: near.send(b"2"))


def test_a_dead_process_breaks_its_connections(bench: Bench) -> None:
    near, _ = bench.connect()
    bench.b.loop.kill()
    bench.network.leave("b")
    with pytest.raises(ConnectionClosedError):
        bench.run(bench.a, near.recv)
    assert bench.network.wires() == []


def test_loss_breaks_the_connection_and_not_the_order(bench: Bench) -> None:
    near, far = bench.connect()
    bench.network.loss = 1.0
    bench.run(bench.a, lambda: send_all(near, [b"1"]))
    for party, end in ((bench.a, near), (bench.b, far)):
        with pytest.raises(ConnectionClosedError):
            bench.run(party, end.recv)


def test_a_sender_waits_for_a_slow_link(bench: Bench) -> None:
    near, far = bench.connect()
    bench.network.slow("a", "b", Weather(1_000, 100_000))
    sending = bench.a.loop.create_task(send_all(near, [bytes(200_000)] * 3))
    bench.timeline.run_until(bench.timeline.now_us + 100_000)
    assert not sending.done()
    bench.timeline.run_until(bench.timeline.now_us + 10_000_000)
    assert sending.done()
    assert len(bench.run(bench.b, lambda: receive(far, 3))) == 3
    assert not bench.stumbles


def test_a_sender_that_waits_hears_of_the_end(bench: Bench) -> None:
    near, _ = bench.connect()
    bench.network.block("a", "b")
    sending = bench.a.loop.create_task(send_all(near, [bytes(300_000)] * 2))
    bench.timeline.run_until(bench.timeline.now_us + 100_000)
    bench.network.drop(near.wire)
    bench.timeline.run_until(bench.timeline.now_us + 100_000)
    with pytest.raises(ConnectionClosedError):
        sending.result()
    assert asyncio.isfuture(sending)
