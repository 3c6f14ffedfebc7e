"""Both hosts do the same with the same: one suite, a real journal, an engine here or behind a pipe."""

from collections.abc import Iterator, Sequence
from hashlib import sha512
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.clock import Clock
from gateway.courier.limits import CourierLimits
from gateway.engine import Engine
from gateway.engine.effects import AgentChanged, Appended, Refused, Sent
from gateway.engine.inputs import AddAgent, Input, Now, Send, ViewChanged
from gateway.engine.own_stream import OwnStream, Standing
from gateway.engine.policy import Policy
from gateway.hosting.host import EngineFailed, EngineHost
from gateway.hosting.inline import InlineHost
from gateway.hosting.piped import PipedHost
from gateway.hosting.serving import Serving
from gateway.hosting.ticking import Ticking
from outbox.errors import StorageFailed, StorageFull
from outbox.ids import AgentId, Epoch, NodeId
from outbox.journal import Journal
from outbox.records import Identity
from stateroom.view import NodeView, OwnerView, View

NODE, MESH, EPOCH = NodeId("a"), "mesh", Epoch("000001-0123456789ab")
NOW = Now(1_800_000_000_000, 1_000)
BUG = "the planted bug"


def view(version: int, *agents: str, peer: bool = False) -> View:
    owned = {name: OwnerView(agent=name, node=NODE, owner_epoch=1, status="active") for name in agents}
    nodes = {"b": NodeView(node="b", public_key=bytes(32), role="member")} if peer else {}
    return View(version=version, mesh=MESH, nodes=nodes, agents=owned, cursors={})


class Disk(Journal):
    """A journal whose commits can be refused."""

    refuses: type[StorageFull | StorageFailed] | None = None

    def commit(self) -> None:
        if self.refuses is not None:
            raise self.refuses("no space", hint="free some")
        super().commit()


class Buggy(Engine):
    """An engine that stumbles over one agent's name."""

    def apply(self, inputs: Any, now: Now) -> Any:
        inputs = list(inputs)
        effects = super().apply(inputs, now)
        if any(isinstance(item, AddAgent) and item.name == "bug" for item in inputs):
            raise LookupError(BUG)
        return effects


class Wire:
    """To an engine in this process, as bytes."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving

    async def exchange(self, text: bytes) -> bytes:
        return self.serving.answer(text)

    async def watch(self) -> None:
        raise AssertionError


class Setting:
    def __init__(self, disk: Disk, kind: str) -> None:
        self.disk = disk
        self.kind = kind
        self.made = 0
        self.own = OwnStream(EPOCH)

    def engine(self, seen: View, now: Now) -> Engine:
        self.made += 1
        return Buggy(
            self.disk,
            seen,
            lambda text: sha512(text).digest(),
            Clock(),
            now,
            policy=Policy(),
            limits=CourierLimits(),
            desk=None,  # type: ignore[arg-type]  # nobody knocks
            own=self.own,
        )

    def ticking(self, seen: View, now: Now) -> Ticking:
        return Ticking(self.disk, self.engine, seen, now)

    async def host(self, seen: View) -> EngineHost:
        if self.kind == "inline":
            return InlineHost(self.ticking(seen, NOW))
        return await PipedHost.build(Wire(Serving(self.ticking)), seen, NOW)


@pytest.fixture(params=["inline", "piped"])
def setting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Setting]:
    disk = Disk.create(tmp_path / "journal.db", Identity(MESH, NODE, EPOCH), wal_bytes=0)
    yield Setting(disk, request.param)
    disk.close()


def add(name: str, req: int = 1) -> AddAgent:
    return AddAgent(req, AgentId(name), bytes(32))


def send(to: str, req: int = 2) -> Send:
    return Send(req=req, agent=AgentId("ann"), to=to, payload=msgspec.Raw(b'{"n": 1}'))


async def answers(host: EngineHost, batch: Sequence[Input]) -> list[type]:
    return [type(effect) for effect in await host.apply(batch, NOW)]


async def test_what_comes_back_is_on_disk(setting: Setting) -> None:
    host = await setting.host(view(1))
    changed = await host.apply([add("ann")], NOW)
    assert [effect for effect in changed if isinstance(effect, AgentChanged)] != []
    assert not setting.disk.database.in_transaction
    assert [row.name for row in setting.disk.agents()] == ["ann"]


async def test_a_view_counts_from_its_place_in_the_batch(setting: Setting) -> None:
    host = await setting.host(view(1))
    await host.apply([add("ann")], NOW)
    assert Refused in await answers(host, [send("bob")])
    found = await answers(host, [ViewChanged(view(2, "ann", "bob")), send("bob")])
    assert Sent in found
    assert Appended in found
    gone = ViewChanged(view(3, "ann"))
    assert Refused in await answers(host, [gone, send("bob", 3)])


async def test_it_says_when_it_wakes_and_how_its_outbox_stands(setting: Setting) -> None:
    host = await setting.host(view(1))
    assert host.rest.standing is Standing.ALONE
    assert host.rest.wake_ms == NOW.mono_ms
    await host.apply([add("ann")], NOW)
    assert host.rest.standing is Standing.PROVEN
    assert host.rest.wake_ms is None
    assert host.rest.wall_ms(Now(NOW.wall_ms + 5, NOW.mono_ms + 5)) == NOW.wall_ms + 5


async def test_a_full_disk_keeps_nothing_and_the_engine_forgets_it(setting: Setting) -> None:
    host = await setting.host(view(1))
    await host.apply([add("ann")], NOW)
    setting.disk.refuses = StorageFull
    with pytest.raises(StorageFull, match="no space") as caught:
        await host.apply([add("bob"), ViewChanged(view(2, "ann", "eve"))], NOW)
    assert caught.value.hint == "free some"
    assert setting.made == 2
    setting.disk.refuses = None
    assert AgentChanged in await answers(host, [add("bob")])
    assert Sent in await answers(host, [send("eve")]), "it has the latest view that it was told"


async def test_a_bug_keeps_nothing_and_the_engine_forgets_it(setting: Setting) -> None:
    host = await setting.host(view(1))
    with pytest.raises(EngineFailed) as caught:
        await host.apply([add("ann"), add("bug")], NOW)
    assert BUG in f"{caught.value}{caught.value.__cause__}"
    assert setting.disk.agents() == []
    assert AgentChanged in await answers(host, [add("ann")])


async def test_a_disk_that_cannot_be_trusted_is_the_end(setting: Setting) -> None:
    host = await setting.host(view(1))
    setting.disk.refuses = StorageFailed
    with pytest.raises(StorageFailed, match="no space"):
        await host.apply([add("ann")], NOW)
    assert setting.made == 1
