"""A tick in which several things go wrong at once: everybody is told what became of their own request."""

import asyncio
from typing import Any

import msgspec
import pytest

from gateway import intake
from gateway.clock import Clock
from gateway.courier.limits import CourierLimits
from gateway.engine import Engine
from gateway.engine.bloblife import BlobsFit, BlobsFull
from gateway.engine.doubts import EndDoubts
from gateway.engine.effects import Answer, Refused, Sent
from gateway.engine.inputs import AddAgent, Input, Now, PageRead, RelayCaught, Send, Subscribe
from gateway.engine.own_stream import OwnStream
from gateway.engine.policy import Policy
from gateway.engine.stalls import StreamFlows, StreamStalled
from gateway.errors import Denied
from gateway.hosting.inline import InlineHost
from gateway.hosting.ticking import Ticking
from gateway.limits import GATHER_WITHIN_MS
from gateway.runtime import Runtime
from outbox.envelope import Ack
from outbox.errors import StorageFull
from outbox.ids import AgentId, Epoch, MeshId, NodeId
from outbox.kinds import AckStatus
from outbox.memory import MemoryStore
from outbox.records import DeliveryState, Identity
from stateroom.view import NodeView, OwnerView, View
from tests.gateway.outboxes import STREAM, Outbox, answer, entry, event_id

PEER, THIRD = NodeId("peer"), NodeId("third")
HERE, ANN, BOB = NodeId("here"), AgentId("ann"), AgentId("bob")
WHO = Identity(MeshId("m" * 43), HERE, Epoch("000001-0123456789ab"))
WITHIN_S = 60.0


class Disk(MemoryStore):
    """A journal whose disk is full from the next commit but so many on, until somebody makes room."""

    room: int = 1_000

    def commit(self) -> None:
        if self.room == 0:
            raise StorageFull("no space left", hint="free some")
        self.room -= 1
        super().commit()


class Cursed(Engine):
    """An engine with a bug that one kind of message shows."""

    def apply(self, inputs: list[Input], now: Now) -> Any:
        if any(isinstance(item, Send) and item.type == "curse" for item in inputs):
            raise ZeroDivisionError("a bug")
        return super().apply(inputs, now)


class Nobody:
    """Agents, links and the room hear nothing here."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


class Stopped(Clock):
    """A clock that a test sets."""

    now_ms: int = 1_000

    def mono_ms(self) -> int:
        return self.now_ms


def node(disk: MemoryStore, clock: Clock | None = None) -> Runtime:
    clock, own = clock or Clock(), OwnStream(WHO.epoch)
    view = View(
        version=1,
        mesh=WHO.mesh,
        nodes={node: NodeView(node=node, public_key=bytes(32), role="seed") for node in (HERE, STREAM.node)},
        agents={
            agent: OwnerView(agent=agent, node=node, owner_epoch=1, status="active")
            for agent, node in ((ANN, HERE), (BOB, STREAM.node))
        },
        cursors={},
    )

    def engine(view: View, now: Now) -> Engine:
        return Cursed(
            disk,
            view,
            lambda _: bytes(64),
            clock,
            now,
            policy=Policy(),
            limits=CourierLimits(),
            desk=Nobody(),  # type: ignore[arg-type]
            own=own,
        )

    host = InlineHost(Ticking(disk, engine, view, Now(clock.wall_ms(), clock.mono_ms())))
    runtime = Runtime(host, disk, view, clock)
    runtime.outlets = Nobody()  # type: ignore[assignment]
    return runtime


def message(runtime: Runtime, kind: str, to: str = "ann") -> Send:
    return Send(req=runtime.req(), agent=ANN, to=to, payload=msgspec.Raw(b'"x"'), type=kind)


def code(answer: Answer) -> str:
    return answer.code if isinstance(answer, Refused) else "ok"


@pytest.mark.parametrize(
    ("room", "told"),
    [
        (0, ["storage_full", "storage_full", "storage_full", "storage_full"]),
        (1, ["ok", "internal", "storage_full", "storage_full"]),
        (2, ["ok", "internal", "ok", "storage_full"]),
        (9, ["ok", "internal", "ok", "ok"]),
    ],
)
async def test_a_disk_that_fills_while_a_bug_is_looked_for(room: int, told: list[str]) -> None:
    disk = Disk(WHO)
    runtime = node(disk)
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(WITHIN_S):
        running = tasks.create_task(runtime.run())
        await runtime.ask(AddAgent(runtime.req(), ANN, b"\0" * 32))
        disk.room = room
        kinds = ("good", "curse", "good", "good")
        answers = await runtime.ask_all([message(runtime, kind) for kind in kinds])
        assert [code(answer) for answer in answers] == told
        disk.room = 1_000
        assert isinstance(await runtime.ask(message(runtime, "good")), Sent), "it goes on by itself"
        assert not runtime.storage_full
        running.cancel()
    assert disk.head().seq == 2 * (told.count("ok") + 1), "what was told is there: each message and its ACK"


async def test_what_is_noticed_while_the_disk_is_full_is_told_when_it_has_room() -> None:
    """In its order: what has ended meanwhile is not open for ever."""
    disk = Disk(WHO)
    runtime = node(disk)
    lies = RelayCaught(PEER, THIRD, "broken_chain", "it lies")
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(WITHIN_S):
        running = tasks.create_task(runtime.run())
        await runtime.ask(AddAgent(runtime.req(), ANN, b"\0" * 32))
        disk.room = 0
        for noticed in (
            [lies, StreamStalled(THIRD, PEER), StreamStalled(PEER, PEER), BlobsFull(9, 8)],
            [lies, StreamFlows(THIRD), BlobsFit()],
        ):
            for item in noticed:
                runtime.tell_now(item)
            with pytest.raises(Denied):  # a tick has taken them in, and the disk has refused it
                await runtime.ask(message(runtime, "good"))
        disk.room = 1_000
        for _ in range(2):  # the first finds that there is room, and what was noticed follows
            await runtime.ask(message(runtime, "good"))
        running.cancel()
    found = {(row.kind, row.subject): row for row in disk.incidents(open_only=False)}
    assert {at: row.closed_at_ms is None for at, row in found.items()} == {
        ("relay_tampered", PEER): True,
        ("stream_stalled", THIRD): False,
        ("stream_stalled", PEER): True,
        ("blobs_full", HERE): False,
    }


class NoRoom(MemoryStore):
    """Whoever changes something is refused until somebody makes room, and looking for some finds none."""

    room: int = 0

    def commit(self) -> None:
        if self._undo and not self.room:
            raise StorageFull("no space left", hint="free some")
        super().commit()

    def find_room(self) -> None:
        self.read_only = not self.room


async def test_what_needs_room_refuses_nobody_who_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what links and files have noticed, nor what a peer brings: they come again and again."""
    monkeypatch.setattr("gateway.runtime.STORAGE_PAUSE_S", 0.0)
    disk = NoRoom(WHO)
    disk.room = 1_000
    runtime = node(disk)
    ack = Ack(ref=event_id(1), status=AckStatus.ACCEPTED)
    page = PageRead(STREAM.node, Outbox([entry(1, answer(2, 1, ack), (HERE,))]).pages[0])  # type: ignore[arg-type]
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(WITHIN_S):
        running = tasks.create_task(runtime.run())
        await runtime.ask(AddAgent(runtime.req(), ANN, b"\0" * 32))
        disk.room = 0
        with pytest.raises(Denied):
            await runtime.ask(message(runtime, "good"))
        for number in range(9):
            runtime.tell_now(StreamStalled(PEER, PEER))
            runtime.tell_now(page)
            await runtime.ask(Subscribe(req=runtime.req(), subscriber=f"{number}", agent=ANN, session="s"))
            assert runtime.storage_full
        running.cancel()
    assert disk.incidents(open_only=False) == []


async def test_what_was_noticed_last_is_told_last() -> None:
    """A stream that stands still, flows and stands still again does not flow in the end."""
    disk = NoRoom(WHO)
    runtime = node(disk)
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(WITHIN_S):
        running = tasks.create_task(runtime.run())
        with pytest.raises(Denied):
            await runtime.ask(AddAgent(runtime.req(), ANN, b"\0" * 32))
        for item in (StreamStalled(PEER, PEER), StreamFlows(PEER), StreamStalled(PEER, PEER)):
            runtime.tell_now(item)
            await runtime.ask(EndDoubts(runtime.req()))
        disk.room = 1_000
        for _ in range(2):
            await runtime.ask(EndDoubts(runtime.req()))
        running.cancel()
    assert not runtime.storage_full
    assert [row.closed_at_ms for row in disk.incidents(open_only=False)] == [None]


@pytest.mark.parametrize(("since_ms", "commits"), [(GATHER_WITHIN_MS - 1, 1), (GATHER_WITHIN_MS, 2)])
async def test_only_what_a_commit_may_have_held_up_is_waited_for(since_ms: int, commits: int) -> None:
    """Two messages, one turn of the loop apart: right after a commit they share the next one."""
    disk, clock = Disk(WHO), Stopped()
    runtime = node(disk, clock)
    running = asyncio.create_task(runtime.run())
    async with asyncio.timeout(WITHIN_S):
        await runtime.ask(AddAgent(runtime.req(), ANN, bytes(32)))
        clock.now_ms += since_ms
        before = disk.room
        first = asyncio.ensure_future(runtime.ask(message(runtime, "fine")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.gather(first, runtime.ask(message(runtime, "fine")))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert before - disk.room == commits


class Heard(Nobody):
    """Links that write down what they hear of pages."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def cursor_moved(self, _moved: object) -> None:
        self.words.append("moved")

    def page_done(self, _read: PageRead) -> None:
        self.words.append("done")


async def test_a_page_that_waits_when_the_process_dies_was_not_acknowledged_and_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is lost, and nothing is told twice: neither to the peer nor in the journal."""
    monkeypatch.setattr(intake, "LINGER_MS", 3_600_000)
    disk, heard = Disk(WHO), Heard()
    first = node(disk)
    first.outlets = heard  # type: ignore[assignment]
    running = asyncio.create_task(first.run())
    async with asyncio.timeout(WITHIN_S):
        await first.ask(AddAgent(first.req(), ANN, bytes(32)))
        sent = await first.ask(message(first, "fine", to="bob"))
        assert isinstance(sent, Sent)
        ack = Ack(ref=sent.event_id, status=AckStatus.ACCEPTED)
        said = answer(2, 1, ack, corr_id=sent.event_id, source_agent_id=None, to_agent_id=None)
        page = Outbox([entry(1, said, (HERE,))]).pages[0]
        commits = disk.room
        first.tell_now(PageRead(STREAM.node, page))  # type: ignore[arg-type]
        for _ in range(100):
            await asyncio.sleep(0)
        assert (heard.words, disk.room) == ([], commits), "it waits, and nobody was told of it"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert disk.cursor(STREAM.node) is None

        again = node(disk)
        again.outlets = heard  # type: ignore[assignment]
        running = asyncio.create_task(again.run())
        again.tell_now(PageRead(STREAM.node, page))  # type: ignore[arg-type]
        await again.ask(message(again, "fine"))
        assert heard.words == ["moved", "done"], "the same commit took it along"
        again.tell_now(PageRead(STREAM.node, page))  # type: ignore[arg-type]
        await again.ask(message(again, "fine"))
        assert heard.words == ["moved", "done", "done"], "what was read before moves nothing"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    row = disk.delivery(sent.event_id, STREAM.node)
    assert row is not None
    assert row.state is DeliveryState.ACCEPTED
    head = disk.cursor(STREAM.node)
    assert head is not None
    assert head.seq == 1
