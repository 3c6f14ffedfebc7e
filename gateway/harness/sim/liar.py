"""A hostile peer: admitted, with a valid key, and a breaker of every rule that it knows.

Some lies stand in its own chain, well signed: those must be kept in quarantine or refused. Others are frames
that fit no chain: those must close the link and leave nothing behind.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import count

import msgspec
from msgspec.structs import replace
from websockets.exceptions import ConnectionClosed

from gateway.door import PIPE_ROOM
from gateway.harness.sim.clocks import START_MS
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.loop import SimLoop
from gateway.harness.sim.network import Network
from gateway.harness.sim.signing import Keys
from gateway.harness.sim.wire import WireEnd
from gateway.wire.codec import decode, encode
from gateway.wire.frames import VERSION, VERSIONS, BlobWant, Credit, Entries, Filter, Have, Hello, Stock, Want
from outbox.blobref import BlobId
from outbox.chain import Entry, Head, Page, extend, genesis, sign_checkpoint
from outbox.envelope import Ack, DeadLetter, Event, encode_event, encode_header, encode_payload, header_of
from outbox.ids import AgentId, Epoch, EventId, NodeId, Seq, make_event_id
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.readership import whole

LIAR = "zed"
"""The last name of all: it wins no tie by it."""
OWNED = AgentId("zac")
"""An agent that lives on it and is written to, where it is put out: what is on its way to it ends then."""
STRANGER = "mallory"
"""The same, without an admission."""
EPOCH = Epoch("000001-00000000beef")
STOLEN = "a liar said so"
"""The error in its false ACKs: it must not be found anywhere."""

_LISTENS_S = 20.0
_CREDIT_BYTES = 1024 * 1024
"""What it is sent is of no interest to it, but to whoever judges what may be sent."""
_FRESH = 5
"""A lie is about one of the latest events: what has ended long ago cannot be harmed."""
_Lie = Callable[["Liar", NodeId], bytes]


class Victim(msgspec.Struct, frozen=True):
    """An event of honest nodes, which a liar has read."""

    event: EventId
    sender: NodeId
    reader: NodeId
    agent: AgentId
    """Who sent it."""
    waiting: bool
    """Nobody holds its turn yet."""


class Liar:
    """A process that speaks the protocol well enough to abuse it."""

    def __init__(
        self,
        name: str,
        loop: SimLoop,
        network: Network,
        *,
        keys: Keys,
        dice: Dice,
        targets: Sequence[NodeId],
        victims: Callable[[], Sequence[Victim]],
        blobs: Callable[[], Sequence[BlobId]],
    ) -> None:
        self.name = name
        self.node = NodeId(name)
        self.loop = loop
        self.dice = dice
        self.keys = keys
        self.targets = targets
        self.victims = victims
        self.blobs = blobs
        self.pages: list[Page] = []
        self.ask = 1
        """Number of the want that the target follows."""
        self.told = 0
        """Lies that went out."""
        self.plain: list[tuple[Seq, NodeId]] = []
        """Lies that their reader can see in the entry alone: they belong into quarantine."""
        self._network = network
        self._ids = count(1)
        self._start = genesis(keys.mesh, self.node, EPOCH)

    @property
    def head(self) -> Head:
        """Of its own chain."""
        return self.pages[-1].checkpoint.head if self.pages else self._start

    def heads(self) -> dict[Seq, Head]:
        """Everything that it ever vouched for in its own chain."""
        return {head.seq: head for head in (self._start, *(page.checkpoint.head for page in self.pages))}

    def accept(self, channel: str, peer: str, end: WireEnd) -> None:
        """It has no address: nobody dials it."""

    def start(self) -> None:
        """Begin to lie."""
        self.loop.create_task(self._live())

    async def _live(self) -> None:
        while True:
            await asyncio.sleep(self.dice.between(2, 40))
            target = self.dice.among(self.targets)
            try:
                end = await self._network.dial(self, target, PIPE_ROOM)
                async with asyncio.timeout(_LISTENS_S):
                    await self._talk(end, target)
            except (OSError, TimeoutError, ConnectionClosed):
                continue  # thrown out, or out of reach

    async def _talk(self, end: WireEnd, target: NodeId) -> None:
        want = await self._greet(end, target)
        self.ask = want.ask
        for page in self.pages:
            if page.checkpoint.seq > want.after:
                await end.send(self.wire(page))
        for blob in self.blobs()[-_FRESH:]:
            await end.send(encode(BlobWant(blob, 0, 1_000)))  # it knows the name, and nothing else
        for _ in range(self.dice.between(1, 3)):
            self.told += 1
            await end.send(self.dice.among(_LIES)(self, target))
        while True:
            await end.recv()

    async def _greet(self, end: WireEnd, target: NodeId) -> Want:
        head = self.head
        now_ms = START_MS + self.loop.timeline.now_us // 1000
        await end.send(encode(Hello(VERSION, VERSIONS, self.node, self.keys.mesh, now_ms)))
        await end.send(encode(Have((Stock(self.node, head.epoch, 1, head.seq, head.hash),))))
        await end.send(encode(Credit(_CREDIT_BYTES)))
        await end.send(encode(Want(target, None, 0, Filter.MINE)))
        while True:
            frame = decode(await end.recv())
            if isinstance(frame, Want):
                return frame

    # --- making pages

    def event(self, target: NodeId, **fields: object) -> Event:
        """A message of an agent that nobody knows."""
        event = Event(
            event_id=make_event_id(START_MS, b"zz" + next(self._ids).to_bytes(8)),
            kind=Kind.MESSAGE,
            source_node_id=self.node,
            source_agent_id=AgentId("zoe"),
            to_agent_id=AgentId(f"{target}-a0"),
            created_at="2026-09-21T12:00:00.000Z",
            payload=msgspec.Raw(b'"lies"'),
        )
        return replace(event, **fields)

    def page(self, event: Event, target: NodeId, after: Head, *, header: bytes | None = None) -> Page:
        """One event as the page after a head, well signed."""
        body = encode_event(event)
        entry = Entry(
            Seq(after.seq + 1), header or encode_header(header_of(event, (target,), len(body))), body
        )
        checkpoint = sign_checkpoint(
            self.keys.mesh, self.node, extend(after, (entry,)), self.keys.key(self.name).sign
        )
        return Page(EPOCH, (entry,), checkpoint)

    def says(self, event: Event, target: NodeId, *, header: bytes | None = None) -> bytes:
        """Put an event into the own chain and send it."""
        page = self.page(event, target, self.head, header=header)
        self.pages.append(page)
        return self.wire(page)

    def wire(self, page: Page, node: NodeId | None = None) -> bytes:
        """A page as a frame, said to be of its own outbox or of somebody else's."""
        return encode(Entries(node or self.node, whole(page), self.ask))

    def victim(self, target: NodeId) -> Victim | None:
        """An event that the target has to do with."""
        mine = [victim for victim in self.victims() if target in {victim.sender, victim.reader}]
        return self.dice.among(mine[-_FRESH:]) if mine else None


# --- lies in the own chain: quarantined, refused or held and refused


def _unknown_agent(liar: Liar, target: NodeId) -> bytes:
    return liar.says(liar.event(target), target)


def _foreign_agent(liar: Liar, target: NodeId) -> bytes:
    return liar.says(liar.event(target, source_agent_id=AgentId(f"{target}-a0")), target)


def _foreign_node(liar: Liar, target: NodeId) -> bytes:
    liar.plain.append((Seq(liar.head.seq + 1), target))
    return liar.says(liar.event(target, source_node_id=target), target)


def _lying_header(liar: Liar, target: NodeId) -> bytes:
    event = liar.event(target)
    header = header_of(event, (target,), len(encode_event(event)))
    liar.plain.append((Seq(liar.head.seq + 1), target))
    return liar.says(event, target, header=encode_header(replace(header, attempt=2)))


def _stolen_ack(liar: Liar, target: NodeId) -> bytes:
    victim = liar.victim(target)
    if victim is None:
        return _unknown_agent(liar, target)
    ack = Ack(ref=victim.event, status=AckStatus.PROCESSED, outcome=Outcome.FAILED, error=STOLEN)
    return liar.says(_notice(liar, target, Kind.ACK, victim.event, encode_payload(ack)), target)


def _stolen_letter(liar: Liar, target: NodeId) -> bytes:
    waiting = [victim for victim in liar.victims() if victim.waiting and victim.reader == target]
    victim = liar.dice.among(waiting) if waiting else None
    if victim is None:
        return _unknown_agent(liar, target)
    letter = DeadLetter(ref=victim.event, reason=STOLEN, attempts=1)
    return liar.says(_notice(liar, target, Kind.DEAD_LETTER, victim.event, encode_payload(letter)), target)


def _stolen_id(liar: Liar, target: NodeId) -> bytes:
    victim = liar.victim(target)
    if victim is None:
        return _unknown_agent(liar, target)
    return liar.says(liar.event(target, event_id=victim.event), target)


def _notice(liar: Liar, target: NodeId, kind: Kind, about: EventId, payload: msgspec.Raw) -> Event:
    return liar.event(
        target, kind=kind, corr_id=about, payload=payload, source_agent_id=None, to_agent_id=None
    )


# --- frames that fit no chain: the link closes


def _bad_signature(liar: Liar, target: NodeId) -> bytes:
    page = liar.page(liar.event(target), target, liar.head)
    return liar.wire(replace(page, checkpoint=replace(page.checkpoint, signature=b"\x00" * 64)))


def _hole(liar: Liar, target: NodeId) -> bytes:
    return liar.wire(liar.page(liar.event(target), target, _further(liar.head)))


def _other_past(liar: Liar, target: NodeId) -> bytes:
    """Follows on by number, not by hash."""
    return liar.wire(liar.page(liar.event(target), target, replace(liar.head, hash=b"\x01" * 32)))


def _foreign_stream(liar: Liar, target: NodeId) -> bytes:
    page = liar.page(liar.event(target), target, liar.head)
    other = liar.dice.among(liar.targets)
    return liar.wire(replace(page, checkpoint=replace(page.checkpoint, node=other)), other)


def _replayed(liar: Liar, target: NodeId) -> bytes:
    """Honest in itself, and old."""
    if not liar.pages:
        return _hole(liar, target)
    return liar.wire(liar.dice.among(liar.pages))


def _garbage(liar: Liar, target: NodeId) -> bytes:  # noqa: ARG001 - a lie like the others
    return liar.dice.octets(60)


def _second_want(liar: Liar, target: NodeId) -> bytes:  # noqa: ARG001 - as above
    return encode(Want(target, None, 0))


def _further(head: Head) -> Head:
    return replace(head, seq=Seq(head.seq + 1))


def _all_bodies(liar: Liar, target: NodeId) -> bytes:  # noqa: ARG001 - as above
    """It asks for what is for others."""
    return encode(Want(target, None, 0, Filter.ALL, 2))


_LIES: tuple[_Lie, ...] = (
    _unknown_agent,
    _foreign_agent,
    _foreign_node,
    _lying_header,
    _stolen_ack,
    _stolen_letter,
    _stolen_id,
    _bad_signature,
    _hole,
    _other_past,
    _foreign_stream,
    _replayed,
    _garbage,
    _second_want,
    _all_bodies,
)
