"""The two documents of the state room, and what this node says in them.

Everything is said as a signed record; everything is read through the index, as one View.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from msgspec.structs import replace

from auth.errors import InvalidKey
from auth.keys import PublicKey, SigningKey
from auth.members import Member
from gateway.beats import BeatCounter
from gateway.clock import Clock
from gateway.crashpoint import CrashPoint, crashpoint
from gateway.door import CURSORS_ROOM, PIPE_ALL, STATE_ROOM
from gateway.engine.effects import AgentChanged
from gateway.limits import ACTIVITY_EVERY_S, CURSORS_EVERY_S, HEARTBEAT_S
from gateway.unsaid import unsaid
from gateway.wire.limits import HELLO_CHARS_MAX
from outbox import base64url
from outbox.chain import Checkpoint, Head, genesis
from outbox.forks import ForkProof
from outbox.ids import AgentId, Epoch, NodeId, epoch_ordinal
from outbox.records import Identity, LocalAgent
from stateroom.bodies import (
    ROOT,
    ActivityBody,
    AdmissionBody,
    AgentBody,
    Body,
    CursorsBody,
    FloorBody,
    HeartbeatBody,
    NodeBody,
    RevocationBody,
    RoomMap,
    revocation_key,
)
from stateroom.errors import InvalidRecord
from stateroom.forks import fork_body, fork_key_of, fork_proof
from stateroom.index import Index
from stateroom.outflow import Closed
from stateroom.pace import Pace
from stateroom.presence import Presence
from stateroom.records import Record, parse_record, sign_record, thumbprint
from stateroom.revocations import fitting, severity
from stateroom.room import Room
from stateroom.store import RoomStore
from stateroom.view import View

STATE_MAPS = frozenset(
    {RoomMap.NODES, RoomMap.ADMISSIONS, RoomMap.AGENTS, RoomMap.FORKS, RoomMap.REVOCATIONS}
)
"""What the room ``state`` holds; cursors have a room of their own."""

SOFTWARE = f"gateway-mesh/{version('gateway-mesh')}"


def verify_raw(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """``stateroom.records.Verify`` with keys that are checked before they are trusted."""
    try:
        return PublicKey.from_bytes(public_key).verify(signature, message)
    except InvalidKey:
        return False


class Rooms:
    """The state room of one gateway."""

    def __init__(self, path: Path, identity: Identity, key: SigningKey, clock: Clock) -> None:
        self._identity = identity
        self._key = key
        self._clock = clock
        self._watchers: list[Callable[[View], None]] = []
        self._store = RoomStore(path)
        self._index = Index(identity.mesh, verify_raw)
        self._presence = Presence(self._index.heartbeat)
        self.beats = BeatCounter(None)
        self._shown: tuple[object, ...] = ()
        self._active: dict[AgentId, int] = {}
        self._active_next_ms = 0
        self._cursors: dict[NodeId, Head] = {}
        self._said: tuple[tuple[str, ...], Checkpoint | None] | None = None
        self._cursors_changed = asyncio.Event()
        self.state = self._room(STATE_ROOM, STATE_MAPS, Pace(), self._presence)
        slow = Pace(window_s=CURSORS_EVERY_S)
        self.cursors = self._room(CURSORS_ROOM, frozenset({RoomMap.CURSORS}), slow, None)

    def _room(self, name: str, maps: frozenset[RoomMap], pace: Pace, presence: Presence | None) -> Room:
        return Room(
            name,
            maps,
            self._store,
            self._index,
            now_ms=self._clock.mono_ms,
            new_client_id=lambda: int.from_bytes(self._clock.entropy(4)) >> 1,
            on_change=self._changed,
            presence=presence,
            pace=pace,
        )

    async def load(self) -> View:
        """Read what was stored; the view of it."""
        await self.state.load()
        await self.cursors.load()
        return self.view()

    def view(self) -> View:
        """The mesh as it is known now."""
        since_mono_ms = self._clock.wall_ms() - self._clock.mono_ms()
        seen = {
            node: replace(heard, last_seen_ms=heard.last_seen_ms + since_mono_ms)
            for node, heard in self._presence.seen().items()
        }
        return self._index.view(seen, self._presence.version)

    def fork_proofs(self) -> list[ForkProof]:
        """Which nodes have written two histories."""
        return [fork_proof(record) for record in self._index.records(RoomMap.FORKS)]

    def named(self, name: str) -> Room | None:
        """The room of that name."""
        return {STATE_ROOM: self.state, CURSORS_ROOM: self.cursors}.get(name)

    def watch(self, *watchers: Callable[[View], None]) -> None:
        """Tell the view of now, and every later one."""
        for watcher in watchers:
            self._watchers.append(watcher)
            watcher(self.view())

    # --- what we say

    def say_node(self, endpoints: tuple[str, ...], head: Head, floor: Checkpoint | None) -> None:
        """Who we are, where we are, from where to where our outbox goes."""
        self._said = (endpoints, floor)
        body = NodeBody(
            endpoints=endpoints,
            outbox_epoch=head.epoch,
            head_seq=head.seq,
            head_hash=head.hash.hex(),
            software=SOFTWARE,
            floor=FloorBody(epoch=floor.epoch, seq=floor.seq, hash=floor.hash) if floor is not None else None,
        )
        self._put(self.state, RoomMap.NODES, self._identity.node, body)

    def say_agent(self, agent: AgentChanged) -> None:
        """An agent lives here and has these fallbacks and groups, or lives here no longer."""
        body = AgentBody(
            owner=self._identity.node,
            owner_epoch=agent.owner_epoch,
            status="active" if agent.active else "removed",
            handover=self._index.proof(agent.name) if agent.owner_epoch > 1 else "",
            fallback=agent.fallback,  # who stood in for a removed one may have spoken before it went
            grace_ms=agent.grace_ms if agent.active else 0,
            groups=agent.groups if agent.active else (),
        )
        self._put(self.state, RoomMap.AGENTS, agent.name, body)

    def say_agents(self, agents: Iterable[LocalAgent]) -> None:
        """Say again what the room does not hold of the agents here, or holds otherwise."""
        for changed in list(unsaid(self.view(), self._identity.node, agents)):
            self.say_agent(changed)

    def say_member(self, member: Member) -> None:
        """A node was admitted here. The record follows from the ledger's row alone: it is always the same."""
        all_ = PIPE_ALL in member.rooms
        body = AdmissionBody(public_key=member.key, role="member", invite_id=member.invite, reads_all=all_)
        text = self._sign(RoomMap.ADMISSIONS, member.node, body, epoch=1, counter=member.counter)
        self.state.put(RoomMap.ADMISSIONS, member.node, text)
        self._changed()
        crashpoint(CrashPoint.ROOM_AFTER_APPLY)

    def say_founder(self, record: str) -> None:
        """The root's admission of this node. Raises InvalidRecord when it is none: it would hide one."""
        key = (RoomMap.ADMISSIONS, self._identity.node)
        self._index.check(*key, record)
        self.state.put(*key, record)
        self._changed()

    def say_fork(self, proof: ForkProof) -> None:
        """A node has written two histories; once told, nobody tells it again."""
        key = fork_key_of(proof)
        if self._index.record(RoomMap.FORKS, key) is None:
            self._put(self.state, RoomMap.FORKS, key, fork_body(proof))

    def standing(self, node: NodeId) -> list[Record]:
        """What a node has said that others build on."""
        return self._index.standing(node)

    def word_of(self, body: RevocationBody, root: SigningKey | None) -> Record:
        """A revocation, signed by the root if its key is given, else by this node; nobody is told yet."""
        key = revocation_key(
            thumbprint(base64url.decode(body.public_key)), ROOT if root else self._identity.node
        )
        epoch = epoch_ordinal(self._identity.epoch)
        text = sign_record(
            (root or self._key).sign,
            mesh=self._identity.mesh,
            room_map=RoomMap.REVOCATIONS,
            key=key,
            signer=ROOT if root else self._identity.node,
            epoch=epoch,
            counter=self._index.next_counter(RoomMap.REVOCATIONS, key, epoch),
            body=body,
            root_key=root.public.raw if root else b"",
        )
        return parse_record(text)

    def revocations(self) -> list[Record]:
        """The words about revoked keys that count."""
        return self._index.records(RoomMap.REVOCATIONS)

    def tell(self) -> tuple[str, ...]:
        """Those words as they are said over a link, the shortest first, as many as fit."""
        return fitting((record.text for record in self.revocations()), HELLO_CHARS_MAX)

    def hear(self, texts: Iterable[str]) -> None:
        """Words about revoked keys, from a link, a refusal or the journal: what counts is said."""
        for text in texts:
            try:
                record = parse_record(text)
            except InvalidRecord:
                continue
            fits = record.map is RoomMap.REVOCATIONS and record.mesh == self._identity.mesh
            known = self._index.record(record.map, record.key) if fits else None
            news = known is None or severity(record) < severity(known)
            if fits and news and self._index.counts(record):
                self.state.put(RoomMap.REVOCATIONS, record.key, text)
        self._changed()

    def end(self, peer: NodeId, closed: Closed) -> None:
        """Close both documents to a peer."""
        self.state.end(peer, closed)
        self.cursors.end(peer, closed)

    def epoch_began(self, identity: Identity) -> None:
        """Records are signed for another epoch of the outbox now, and go before those of the ones before."""
        self._identity = identity
        if self._said is not None:
            endpoints, floor = self._said
            self.say_node(endpoints, genesis(identity.mesh, identity.node, identity.epoch), floor)

    def cursor_moved(self, source: NodeId, head: Head) -> None:
        """Another outbox was handled up to here; published every few seconds at most."""
        self._cursors[source] = head
        self._cursors_changed.set()

    def beat(self, links: tuple[NodeId, ...], endpoints: tuple[str, ...]) -> None:
        """We are alive."""
        now_ms = self._clock.wall_ms()
        body = HeartbeatBody(at_ms=now_ms, links=links, endpoints=endpoints)
        counter = self.beats.next(now_ms)
        self.state.beat(self._sign(RoomMap.PRESENCE, self._identity.node, body, counter=counter))

    def say_activity(self, agents: Mapping[AgentId, int]) -> None:
        """When the agents here last said something, if that is news and was not told a moment ago."""
        now_ms = self._clock.mono_ms()
        if agents == self._active or now_ms < self._active_next_ms:
            return
        self._active, self._active_next_ms = dict(agents), now_ms + int(ACTIVITY_EVERY_S * 1000)
        body = ActivityBody(agents={str(agent): at_ms for agent, at_ms in agents.items()})
        counter = self.beats.next(self._clock.wall_ms())
        self.state.beat(self._sign(RoomMap.ACTIVITY, self._identity.node, body, counter=counter))

    def last_active_ms(self, node: NodeId, agent: AgentId) -> int | None:
        """When another node last heard of an agent, by its own clock."""
        return self._presence.last_active_ms(node, agent)

    # --- keeping it going

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Replicate the ``state`` room for a while, without publishing anything by itself."""
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(self.state.run())
            try:
                yield
            finally:
                running.cancel()

    def close(self) -> None:
        """Close the file. ``run`` does it by itself."""
        self._store.close()

    async def run(self, head: Callable[[], Head], beat: Callable[[], None]) -> None:
        """Replicate, publish cursors and heartbeats until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.state.run())
                tasks.create_task(self.cursors.run())
                tasks.create_task(self._publish_cursors(head))
                tasks.create_task(_repeat(beat, HEARTBEAT_S))
        finally:
            self._store.close()

    async def _publish_cursors(self, head: Callable[[], Head]) -> None:
        while True:
            await self._cursors_changed.wait()
            self._cursors_changed.clear()
            own = head()
            cursors: dict[str, tuple[Epoch, int]] = {
                node: (at.epoch, at.seq) for node, at in self._cursors.items()
            }
            body = CursorsBody(cursors=cursors, head=(own.epoch, own.seq))
            self._write(self.cursors, RoomMap.CURSORS, self._identity.node, body)
            await asyncio.sleep(CURSORS_EVERY_S)

    def _put(self, room: Room, room_map: RoomMap, key: str, body: Body) -> None:
        self._write(room, room_map, key, body)
        self._changed()

    def _write(self, room: Room, room_map: RoomMap, key: str, body: Body) -> None:
        epoch = epoch_ordinal(self._identity.epoch)
        counter = self._index.next_counter(room_map, key, epoch)
        room.put(room_map, key, self._sign(room_map, key, body, counter=counter))

    def _sign(
        self, room_map: RoomMap, key: str, body: Body, *, counter: int, epoch: int | None = None
    ) -> str:
        return sign_record(
            self._key.sign,
            mesh=self._identity.mesh,
            room_map=room_map,
            key=key,
            signer=self._identity.node,
            epoch=epoch if epoch is not None else epoch_ordinal(self._identity.epoch),
            counter=counter,
            body=body,
        )

    def _changed(self) -> None:
        """Make a new view, unless all that changed is when somebody was last heard."""
        present = tuple(sorted((node, seen.links) for node, seen in self._presence.online().items()))
        shown = (self._index.version, present)
        if shown != self._shown:
            self._shown = shown
            view = self.view()
            for watcher in self._watchers:
                watcher(view)


async def _repeat(action: Callable[[], None], every_s: float) -> None:
    while True:
        action()
        await asyncio.sleep(every_s)
