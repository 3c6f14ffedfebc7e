"""A small world of engines: stores in memory or on disk, set clocks, hand-made views, pages carried by hand.

Every input and every effect passes through JSON, so that what holds here holds when the tick runs elsewhere.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from hashlib import sha512
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from gateway.courier.limits import CourierLimits
from gateway.engine.effects import Answer, Appended, Effect, Handed, Refused, Sent, Ticketed
from gateway.engine.engine import Engine
from gateway.engine.inputs import (
    AddAgent,
    Grant,
    Input,
    Nack,
    Now,
    PageRead,
    RemoveAgent,
    Reply,
    Send,
    Settle,
    StreamKnown,
    Subscribe,
    ViewChanged,
)
from gateway.engine.knocks import Exchange
from gateway.engine.own_stream import OwnStream, Reason
from gateway.engine.policy import Policy
from outbox.chain import Checkpoint, Entry, Head, Page, extend, genesis, sign_checkpoint
from outbox.delivery import standing
from outbox.envelope import (
    Ack,
    Event,
    Header,
    decode_event,
    decode_payload,
    encode_event,
    encode_header,
    encode_payload,
    header_of,
)
from outbox.errors import NotFound
from outbox.ids import Epoch, EventId, MeshId, NodeId, Seq, make_event_id
from outbox.journal import Journal
from outbox.kinds import Kind
from outbox.memory import MemoryStore
from outbox.records import Delivery, Identity, Received
from outbox.retry import RetryPolicy
from outbox.store import Store
from outbox.verification import verify_outbox
from stateroom.view import CursorsView, ForkView, NodeView, OwnerView, RevocationView, View

MESH = MeshId("mesh-" + "x" * 38)
EPOCH = Epoch("000001-0123456789ab")
START_MS = 1_790_000_000_000
POLICY = Policy(retry=RetryPolicy(first_ms=2_000, cap_ms=60_000, attempts_max=3, ack_timeout_ms=10_000))
LIMITS = CourierLimits(max_depth=20, lease_ms=30_000, max_deliveries=3)

_decode_input = msgspec.json.Decoder(Input).decode
_decode_effects = msgspec.json.Decoder(list[Effect]).decode
_decode_now = msgspec.json.Decoder(Now).decode
_Effect = TypeVar("_Effect")


class Entropy:
    """Ids by counting, chance by decree."""

    def __init__(self, node: str) -> None:
        self._node = node.encode()[:2].ljust(2)
        self._ids = count(1)
        self._leases = count(1)
        self.chance = 0.5

    def event_id(self, wall_ms: int) -> EventId:
        return make_event_id(wall_ms, self._node + next(self._ids).to_bytes(8))

    def lease_id(self) -> str:
        return f"lease-{self._node.decode().strip()}-{next(self._leases)}"

    def fraction(self) -> float:
        return self.chance

    def entropy(self, size: int) -> bytes:
        return (self._node + next(self._ids).to_bytes(8))[-size:]


class Desk:
    """Mints a ticket for whoever renews and turns strangers away."""

    def answer(self, item: Any, now: Now, view: View) -> Answer:
        if isinstance(item, Exchange):
            raise NotFound("no such invite", hint="ask for a new one")
        return Ticketed(item.req, f"{now.wall_ms} {view.mesh}".encode())


def proven(epoch: Epoch) -> OwnStream:
    """What a process knows of its outbox once a peer has said that it knows no more."""
    own = OwnStream(epoch)
    own.answered(NodeId("peer"), 0)
    return own


class Node:
    """One gateway: what survives a restart, and the engine that does not."""

    def __init__(self, name: str, store: Store, start: Callable[["Node"], Engine]) -> None:
        self.name = NodeId(name)
        self.store = store
        self.entropy = Entropy(name)
        self.own = proven(store.identity().epoch)
        self.engine = start(self)
        self.effects: list[Effect] = []

    def sign(self, text: bytes) -> bytes:
        return sha512(self.name.encode() + text).digest()

    def verify(self, signature: bytes, text: bytes) -> bool:
        return signature == self.sign(text)


class World:
    """Nodes ``a``, ``b``, ``c`` … and the state room between them."""

    def __init__(self, *names: str, policy: Policy = POLICY, limits: CourierLimits = LIMITS) -> None:
        self.policy, self.limits = policy, limits
        self.wall_ms, self.mono_ms = START_MS, 5_000
        self.reqs, self.versions = count(1), count(1)
        self.owners: dict[str, OwnerView] = {}
        self.absent: set[str] = set()
        """Nodes that nobody hears of."""
        self.cursors: dict[NodeId, CursorsView] = {}
        self.left: set[str] = set()
        """Nodes that are no members any more."""
        self.floors: dict[str, Head] = {}
        """Up to where each node says that it has forgotten its outbox."""
        self.members: dict[NodeId, NodeView] = {}
        self.forks: dict[NodeId, tuple[ForkView, ...]] = {}
        self.out: dict[NodeId, tuple[RevocationView, ...]] = {}
        """Revoked keys."""
        self.nodes: dict[str, Node] = {}
        for name in names:
            self.join(name, MemoryStore(Identity(MESH, NodeId(name), EPOCH)))

    # --- nodes

    def join(self, name: str, store: Store) -> Node:
        self.nodes[name] = Node(name, store, self._start)
        return self.nodes[name]

    def _start(self, node: Node) -> Engine:
        return Engine(
            node.store,
            self.view(),
            node.sign,
            node.entropy,
            self.now(),
            policy=self.policy,
            limits=self.limits,
            desk=Desk(),
            own=node.own,
        )

    def restart(self, name: str) -> None:
        """The process is gone; the disk is not."""
        self.nodes[name].store.rollback()
        self.nodes[name].engine = self._start(self.nodes[name])

    def share(self, rows: int) -> None:
        """No tick looks at more rows for an errand than so many."""
        self.policy = msgspec.structs.replace(self.policy, errand_rows=rows)
        for name in self.nodes:
            self.restart(name)

    def run_errands(self, name: str, *, restarts: bool) -> None:
        """Until none is left; the engine wants to go on at once, whatever has ended it meanwhile."""
        while self.store(name).errands():
            if restarts:
                self.restart(name)
            assert self.nodes[name].engine.next_wake_ms(self.now()) == self.mono_ms
            self.tick(name)

    def come_back(self, name: str, store: Store, reason: Reason | None = None, *, ask: bool = True) -> None:
        """A process of a node starts on this disk and knows nothing yet."""
        node = self.nodes[name]
        node.store = store
        node.own = OwnStream(store.identity().epoch, reason, ask=ask)
        node.engine = self._start(node)

    def answer(self, of: str, by: str) -> list[Effect]:
        """A link comes up: a peer shows how far it knows an outbox; what follows from that."""
        known = self.store(by).signed_cursor(NodeId(of))
        effects = self.tick(of, StreamKnown(NodeId(by), known))
        while self.nodes[of].own.is_due(self.epoch_of(of)):
            effects += self.tick(of)
        return effects

    def epoch_of(self, name: str) -> Epoch:
        return self.store(name).identity().epoch

    def pages_of(self, name: str) -> list[Page]:
        """All epochs of an outbox, in pages."""
        store, pages = self.store(name), []
        head = store.genesis()
        while (page := store.read(head, 1000, 1 << 30)) is not None:
            head = page.checkpoint.head
            pages.append(page)
        return pages

    def history(self, name: str) -> list[Event]:
        """The events of all epochs."""
        return [decode_event(entry.body) for page in self.pages_of(name) for entry in page.entries]

    def store(self, name: str) -> Store:
        return self.nodes[name].store

    # --- time

    def now(self) -> Now:
        return Now(self.wall_ms, self.mono_ms)

    def advance(self, ms: int) -> None:
        self.wall_ms += ms
        self.mono_ms += ms

    def wake(self, name: str) -> list[Effect]:
        """Let time pass until the node has something to do, and let it do it."""
        at_ms = self.nodes[name].engine.next_wake_ms(self.now())
        assert at_ms is not None, f"{name} waits for nothing"
        self.advance(max(0, at_ms - self.mono_ms))
        return self.tick(name)

    # --- the room

    def view(self) -> View:
        return View(
            version=next(self.versions),
            mesh=MESH,
            nodes=self.members
            or {name: self.member(name) for name in {**self.nodes, **self.floors} if name not in self.left},
            agents=dict(self.owners),
            cursors=dict(self.cursors),
            forks=dict(self.forks),
            revocations=dict(self.out),
        )

    def member(self, name: str) -> NodeView:
        online = name not in self.absent
        floor = self.floors.get(name)
        return NodeView(node=NodeId(name), public_key=b"", role="member", online=online, floor=floor)

    def own(self, agent: str, node: str, epoch: int = 1, *, active: bool = True, **rest: Any) -> None:
        """Write an agent's record; nobody has seen it yet."""
        status = "active" if active else "removed"
        self.owners[agent] = OwnerView(agent=agent, node=node, owner_epoch=epoch, status=status, **rest)

    def publish(self, name: str) -> None:
        """Write how far a node has read the others, and its head; nobody has seen it yet."""
        store = self.store(name)
        read = {source: (head.epoch, head.seq) for source, head in store.cursors().items()}
        self.cursors[name] = CursorsView(cursors=read, head=(store.head().epoch, store.head().seq))

    def revoke(self, name: str, last: Checkpoint | None, *, reason: str = "") -> None:
        """A seed puts a node out, up to a place in its outbox; nobody has seen it yet."""
        word = RevocationView(
            node=NodeId(name),
            public_key=b"",
            ban=False,
            by="seed",
            reason=reason,
            last=last,
            next_epoch=1000,
        )
        self.left.add(name)
        self.out[NodeId(name)] = (word,)

    def see(self, *names: str) -> list[Effect]:
        view = self.view()
        return [effect for name in names or self.nodes for effect in self.tick(name, ViewChanged(view))]

    # --- ticks

    def tick(self, name: str, *inputs: Input, lost: bool = False) -> list[Effect]:
        """One transaction; a ``lost`` one never reaches the disk and takes the engine's memory with it."""
        node = self.nodes[name]
        carried = [_decode_input(msgspec.json.encode(item)) for item in inputs]
        node.store.begin()
        effects = node.engine.apply(carried, _decode_now(msgspec.json.encode(self.now())))
        if lost:
            self.restart(name)
            return []
        node.store.commit()
        back = _decode_effects(msgspec.json.encode(effects))
        assert back == effects
        node.effects.extend(back)
        return back

    def ask(self, name: str, request: Input) -> Answer:
        """The one answer to a request."""
        answers = [e for e in self.tick(name, request) if getattr(e, "req", None) == request.req]
        assert len(answers) == 1, answers
        return answers[0]

    # --- what agents and operators do

    def live(self, name: str, *agents: str, **policy: Any) -> None:
        """Let agents live on a node, and everybody know."""
        for agent in agents:
            changed = self.ask(name, AddAgent(next(self.reqs), agent, b"\x00" * 32, **policy))
            self.own(agent, name, changed.owner_epoch, **policy)
        self.see()

    def stand_in(self, name: str, agent: str, owner: str) -> Any:
        """Let a node answer for an agent of another one."""
        return self.ask(name, AddAgent(next(self.reqs), agent, b"\x00" * 32, stands_in_for=owner))

    def leave(self, name: str, agent: str) -> list[Effect]:
        return self.tick(name, RemoveAgent(next(self.reqs), agent))

    def send(self, name: str, agent: str, to: str, payload: bytes = b'{"n":1}', **rest: Any) -> Answer:
        request = Send(req=next(self.reqs), agent=agent, to=to, payload=msgspec.Raw(payload), **rest)
        return self.ask(name, request)

    def sent(self, *args: Any, **rest: Any) -> EventId:
        answer = self.send(*args, **rest)
        assert isinstance(answer, Sent), answer
        return answer.event_id

    def reply(self, name: str, agent: str, event: EventId, payload: bytes = b'"yes"', **rest: Any) -> Answer:
        request = Reply(
            req=next(self.reqs), agent=agent, event_id=event, payload=msgspec.Raw(payload), **rest
        )
        return self.ask(name, request)

    def settle(self, name: str, agent: str, event: EventId, **rest: Any) -> Answer:
        return self.ask(name, Settle(req=next(self.reqs), agent=agent, event_id=event, **rest))

    def nack(self, name: str, agent: str, event: EventId, lease_id: str, delay_ms: int = 0) -> Answer:
        request = Nack(req=next(self.reqs), agent=agent, event_id=event, lease_id=lease_id, delay_ms=delay_ms)
        return self.ask(name, request)

    def listen(
        self, name: str, agent: str, subscriber: str = "socket", session: str = "run-1", credit: int = 10
    ) -> list[Handed]:
        """Subscribe and grant; what was handed over."""
        effects = self.tick(
            name,
            Subscribe(req=next(self.reqs), subscriber=subscriber, agent=agent, session=session),
            Grant(next(self.reqs), subscriber, credit),
        )
        assert not only(effects, Refused), effects
        return only(effects, Handed)

    # --- pages

    def pages(self, reader: str, source: str, entries_max: int = 500) -> Iterator[Page]:
        """What the reader has not handled yet."""
        while (page := self.page(reader, source, entries_max)) is not None:
            yield page

    def page(self, reader: str, source: str, entries_max: int = 500) -> Page | None:
        after = self.store(reader).cursor(source) or genesis(MESH, source, EPOCH)
        return self.store(source).read(after, entries_max, 1 << 20)

    def pull(self, reader: str, source: str) -> list[Effect]:
        effects: list[Effect] = []
        for page in self.pages(reader, source):
            effects += self.tick(reader, PageRead(source, page))
        return effects

    def meet(self) -> None:
        """Carry pages until nobody has anything new."""
        while any(
            self.pull(reader, source) for reader in self.nodes for source in self.nodes if reader != source
        ):
            pass

    def rumour(self) -> None:
        """Everybody publishes cursors and sees those of the others."""
        for name in self.nodes:
            self.publish(name)
        self.see()

    # --- looking

    def delivery(self, name: str, event: EventId) -> Delivery:
        row = standing(self.store(name).obligations(event))
        assert row is not None
        return row

    def row(self, name: str, event: EventId) -> Received:
        (row,) = self.store(name).ledger(event)
        return row

    def said(self, name: str, kind: str | None = None) -> list[Event]:
        """The events of a node's outbox, in order."""
        page = self.store(name).read(genesis(MESH, self.nodes[name].name, EPOCH), 1 << 20, 1 << 30)
        events = [decode_event(entry.body) for entry in page.entries] if page else []
        return [event for event in events if kind in {None, event.kind}]

    def acks(self, name: str, event: EventId) -> list[str]:
        """What a node said of an event: ``accepted``, ``ok``, ``failed: expired`` …"""
        acks = [decode_payload(said, Ack) for said in self.said(name, Kind.ACK) if said.corr_id == event]
        return [
            ack.status if ack.status == "accepted" else ack.outcome + (f": {ack.error}" if ack.error else "")
            for ack in acks
        ]

    def incidents(self, name: str) -> list[tuple[str, str]]:
        return [(row.kind, row.subject) for row in self.store(name).incidents(open_only=True)]

    def verify(self) -> None:
        """Every outbox is a chain from its genesis to its head."""
        for node in self.nodes.values():
            start = genesis(MESH, node.name, EPOCH)
            assert verify_outbox(node.store, node.verify, start) == node.store.head()


class Stranger:
    """A peer that writes what it likes, well chained."""

    def __init__(self, name: str) -> None:
        self.name = NodeId(name)
        self.head = genesis(MESH, self.name, EPOCH)
        self._ids = count(1)

    def event(self, **fields: Any) -> Event:
        event = Event(
            event_id=make_event_id(START_MS, b"zz" + next(self._ids).to_bytes(8)),
            kind=Kind.MESSAGE,
            source_node_id=self.name,
            source_agent_id="eve",
            to_agent_id="bob",
            created_at="2026-11-27T12:00:00.000Z",
            payload=msgspec.Raw(b"1"),
        )
        return msgspec.structs.replace(event, **fields)

    def ack(self, ref: str, **fields: Any) -> Event:
        """``processed``, unless the fields say otherwise."""
        payload = encode_payload(Ack(**{"ref": ref, "status": "processed", **fields}))
        return self.event(kind=Kind.ACK, corr_id=ref, source_agent_id=None, to_agent_id=None, payload=payload)

    def says(self, *events: Event, to: Any = ("b",)) -> PageRead:
        bodies = [encode_event(event) for event in events]
        headers = [header_of(event, to, len(body)) for event, body in zip(events, bodies, strict=True)]
        return self.writes(*zip(headers, bodies, strict=True))

    def writes(self, *entries: tuple[Header | bytes, bytes]) -> PageRead:
        made = tuple(
            Entry(
                Seq(self.head.seq + 1 + place),
                header if isinstance(header, bytes) else encode_header(header),
                body,
            )
            for place, (header, body) in enumerate(entries)
        )
        self.head = extend(self.head, made)
        checkpoint = sign_checkpoint(MESH, self.name, self.head, lambda text: sha512(text).digest())
        return PageRead(self.name, Page(EPOCH, made, checkpoint))


class Counting:
    """A store that counts the rows it is asked for and told of; ``most`` is the most of one transaction."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.rows = self.most = 0

    def begin(self) -> None:
        self.rows = 0
        self._store.begin()

    def commit(self) -> None:
        self.most = max(self.most, self.rows)
        self._store.commit()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Counting":
        return Counting(deepcopy(self._store, memo))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not callable(method):
            return method

        def counted(*args: Any, **named: Any) -> Any:
            found = method(*args, **named)
            self.rows += rows_in(found)
            return found

        return counted


def rows_in(found: Any) -> int:
    """How many rows an answer of a store is, or a call that changes one."""
    match found:
        case list():
            return len(found)
        case (list(), _):
            return len(found[0])
        case _:
            return 1


def only(effects: list[Any], kind: type[_Effect]) -> list[_Effect]:
    return [effect for effect in effects if isinstance(effect, kind)]


@pytest.fixture(name="only")
def only_fixture() -> Callable[[list[Any], type[Any]], list[Any]]:
    """The effects of one kind."""
    return only


@pytest.fixture
def counting() -> type[Counting]:
    """A store that counts rows."""
    return Counting


@pytest.fixture
def stranger() -> Stranger:
    return Stranger("x")


@pytest.fixture
def make_world() -> type[World]:
    """For tests with a policy of their own."""
    return World


@pytest.fixture
def routed(make_world: Any, stranger: Any) -> Any:
    """``eve`` lives on the hand-written node ``x``; ``ann`` has written to her."""
    world = make_world("a")
    world.own("eve", "x")
    world.live("a", "ann")
    world.event = world.sent("a", "ann", "eve")
    world.hear = lambda *events: world.tick("a", stranger.says(*events, to=("a",)))
    return world


@pytest.fixture
def world() -> World:
    """Two nodes that know of ``ann`` at ``a`` and ``bob`` at ``b``."""
    made = World("a", "b")
    made.live("a", "ann")
    made.live("b", "bob")
    return made


@pytest.fixture
def mesh(world: World) -> World:
    """The two nodes, as members that know of each other."""
    for name in ("a", "b"):
        world.members[NodeId(name)] = NodeView(node=NodeId(name), public_key=b"k" * 32, role="member")
    world.see()
    return world


@pytest.fixture(params=["memory", "journal"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """The same world over both stores."""
    made = World()
    journals: list[Journal] = []
    for name in ("a", "b"):
        identity = Identity(MESH, NodeId(name), EPOCH)
        if request.param == "memory":
            made.join(name, MemoryStore(identity))
        else:
            journals.append(Journal.create(tmp_path / f"{name}.db", identity, wal_bytes=0))
            made.join(name, journals[-1])
    made.live("a", "ann")
    made.live("b", "bob")
    yield made
    for journal in journals:
        journal.close()


@pytest.fixture
def appended() -> Callable[[list[Effect]], list[Head]]:
    """The heads of the pages that a tick appended."""
    return lambda effects: [effect.page.checkpoint.head for effect in effects if isinstance(effect, Appended)]


@pytest.fixture
def queued(either: Any) -> Any:
    """An event waits in ``bob``'s inbox."""
    either.event = either.sent("a", "ann", "bob", expires_in_ms=3_600_000)
    either.pull("b", "a")
    return either


@pytest.fixture
def open_door(world: Any) -> Any:
    """``eve`` at ``x`` may write to ``bob`` at ``b``."""
    world.own("eve", "x")
    world.see()
    return world
