"""A node is put out by the root, a liar or an honest one: some time later nobody takes or says anything more.

Who has not heard of it yet, behind a partition, may go on until it has. What it said up to the place that the
root names counts, and may be read whenever it comes, from whoever has it. What is owed to it ends soon. Of an
honest node the others lose nothing but what was for it, and it is told in the end.
"""

from collections.abc import Iterable, Iterator

from gateway.door import PIPE_ROOM
from gateway.engine.limits import ENDED_UNREAD_AFTER_MS
from gateway.engine.revoked import REVOKED
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.gateway import SimGateway
from gateway.harness.sim.liar import LIAR, OWNED
from gateway.harness.sim.loop import SimLoop
from gateway.harness.sim.mesh import SimMesh
from gateway.harness.sim.plan import Fault
from gateway.harness.sim.signing import Keys
from gateway.harness.sim.wire import WireEnd
from outbox import base64url
from outbox.chain import Checkpoint
from outbox.ids import NodeId, epoch_ordinal
from outbox.records import Delivery, DeliveryState
from stateroom.bodies import ROOT, LastPlace, RevocationBody, RoomMap, revocation_key
from stateroom.limits import NEXT_EPOCH_STEP
from stateroom.records import Record, sign_record, thumbprint
from stateroom.revocations import revocation_body, stands

_AGAIN_S = 5.0
_LOOK_EVERY_S = 1.0
_CUT_OFF_US = 3_000_000
"""Of nodes that never stand still: what was under way, and a moment to be told why."""
_SETTLED_US = 15_000_000
"""Until the engine has seen what the room knows, behind a slow disk."""
_ENDED_US = _SETTLED_US + 1_000 * ENDED_UNREAD_AFTER_MS
"""Of a process: until nothing more is owed to it, whether or not somebody brings what it had said before."""
_STANDING_STILL = frozenset({Fault.STOP, Fault.SLOW_DISK, Fault.DISK_FULL, Fault.ASIDE})
_ALL = 1_000_000
_Place = tuple[int, int]


def honest_victim(mesh: SimMesh) -> NodeId:
    """One that carries nothing for others: without a seed a mesh of nodes that never meet is none."""
    dice = Dice(mesh.plan.seed, "whom to expel")
    return dice.among([name for name in mesh.names if name not in mesh.topology.mirrors])


class Expulsion:
    """Of one node of one world."""

    def __init__(self, mesh: SimMesh, loop: SimLoop, who: NodeId) -> None:
        self._mesh = mesh
        self._loop = loop
        self._who = who
        self._agents = [OWNED] if who == LIAR else [agent.name for agent in mesh.agents[who]]
        self._knew_us: dict[tuple[NodeId, int], int] = {}
        """Since when each node has known it; once more after it was put back."""
        self._read: dict[tuple[NodeId, int], _Place] = {}
        """How far each may read: to where it was by then, or to the place that the root names."""
        self._named: _Place = (0, 0)
        self._said = self._calm = False
        self._runs: dict[SimGateway, int] = {}
        """Since when each process has known it."""
        self._tap, mesh.network.tap = mesh.network.tap, self._taps

    def begin(self) -> None:
        """Let it happen in the first half of the world, once somebody has read what the node says."""
        dice = Dice(self._mesh.plan.seed, "expulsion" if self._who == LIAR else f"expulsion of {self._who}")
        self._loop.call_later(dice.between(20, self._mesh.plan.minutes * 30), self._try, dice)
        self._loop.call_later(_LOOK_EVERY_S, self._look)

    def calm(self) -> None:
        """The faults are over: what is owed to the node ends with a word of the root only, so it says it now,
        or again if all who had heard it were put back."""
        self._calm = True

    def _try(self, dice: Dice) -> None:
        self._loop.call_later(_AGAIN_S, self._try, dice)
        running = [gateway for gateway in self._others() if gateway.digest()]
        read = [gateway for gateway in running if gateway.home.disk.signed_cursor(self._who) is not None]
        if not running or not (read or self._calm) or not self._is_needed():
            return
        gateway = dice.among(read or running)
        last = gateway.home.disk.signed_cursor(self._who)
        self._named = (epoch_ordinal(last.epoch), last.seq) if last is not None else (0, 0)
        self._mesh.chronicle.note(gateway.name, "revokes", f"{self._who} up to {self._named[1]}")
        if self._who != LIAR:
            self._mesh.outcasts.add(self._who)
        word = _word(self._mesh.keys, self._who, last, gateway.rooms.standing(self._who))
        gateway.loop.call_soon(gateway.rooms.hear, (word,))
        self._said = True

    def _is_needed(self) -> bool:
        """It was not said, or to nobody who is there; who was not put back since is not told twice."""
        remember = {self._name(gateway) for gateway in self._others()}
        return not self._said or (self._calm and self._knew_us.keys().isdisjoint(remember))

    def _others(self) -> list[SimGateway]:
        """Those that are in the mesh: who was put out itself hears of nobody else."""
        out = {self._who, *self._mesh.outcasts}
        return [gateway for gateway in self._mesh.living() if NodeId(gateway.name) not in out]

    def _is_told(self, gateway: SimGateway) -> bool:
        return any(revocation_body(word).node == self._who for word in gateway.rooms.revocations())

    def _knows(self, gateway: SimGateway) -> int | None:
        """Since when."""
        if not gateway.digest() or not self._is_told(gateway):
            return None
        return self._knew_us.setdefault(self._name(gateway), self._mesh.timeline.now_us)

    def _name(self, gateway: SimGateway) -> tuple[NodeId, int]:
        return NodeId(gateway.name), gateway.home.went_back_as

    def _look(self) -> None:
        self._loop.call_later(_LOOK_EVERY_S, self._look)
        for gateway in self._others():
            since_us = self._knows(gateway)
            if since_us is not None:
                self._look_at_owed(gateway)
            if since_us is not None and self._mesh.timeline.now_us - since_us >= _SETTLED_US:
                place = self._place(gateway)
                if place > self._read.setdefault(self._name(gateway), max(place, self._named)):
                    what = f"{gateway.name} reads on what {self._who} says, whom it knows to be out"
                    self._mesh.witness.find(Promise.MEMBERS_ONLY, what)

    def _look_at_owed(self, gateway: SimGateway) -> None:
        """What was on its way ends soon, and not when each message has waited for long enough."""
        since_us = self._runs.setdefault(gateway, self._mesh.timeline.now_us)
        if self._stands_still() or self._mesh.timeline.now_us - since_us <= _ENDED_US:
            return
        for agent in self._agents:
            for row in gateway.home.disk.unaccepted(agent, self._who, 1):
                what = f"{gateway.name} still waits for {row.event_id} of {self._who}, whom it knows out"
                self._mesh.witness.find(Promise.EVERY_SEND_ENDS, what)

    def _stands_still(self) -> bool:
        return not _STANDING_STILL.isdisjoint(self._mesh.plan.faults)

    def _taps(self, end: WireEnd, message: bytes) -> None:
        self._tap(end, message)
        gateway = self._mesh.gateways.get(NodeId(end.owner.name))
        if gateway is None or end.other.owner.name != self._who or end.wire.channel != PIPE_ROOM:
            return
        since_us = self._knows(gateway)
        if (
            since_us is not None
            and not self._stands_still()
            and self._mesh.timeline.now_us - since_us > _CUT_OFF_US
        ):
            what = f"{gateway.name} still speaks with {self._who}, whom it knows to be out"
            self._mesh.witness.find(Promise.MEMBERS_ONLY, what)

    def judge(self) -> Iterator[Finding]:
        """At the end everybody knows if anybody does, and somebody does unless all who did were put back."""
        told = {self._name(gateway): self._is_told(gateway) for gateway in self._others()}
        if any(told.values()) and not all(told.values()):
            yield Finding(Promise.MEMBERS_ONLY, f"not everybody knows that {self._who} is out")
        if not any(told.values()) and not self._knew_us.keys().isdisjoint(told):
            yield Finding(Promise.MEMBERS_ONLY, f"everybody has forgotten that {self._who} is out")
        if self._who in self._mesh.outcasts and all(told.values()):
            yield from self._judge_honest()

    def _judge_honest(self) -> Iterator[Finding]:
        there = self._mesh.gateways.get(self._who)
        if there is not None and not self._is_told(there):
            yield Finding(Promise.MEMBERS_ONLY, f"{self._who} is out and was never told")
        for name in self._mesh.members():
            for row in self._mesh.homes[name].disk.deliveries((DeliveryState.DEAD_LETTER,), _ALL):
                if row.error == REVOKED and not self._concerns(row):
                    what = f"{name} gave up {row.event_id} for {row.to_agent}, who lives at {row.node}"
                    yield Finding(Promise.EVERY_SEND_ENDS, what)

    def _concerns(self, row: Delivery) -> bool:
        """Whether it was for a node that is out, or for one of its agents wherever they are."""
        return row.node in {self._who, LIAR} or row.to_agent in {*self._agents, OWNED}

    def _place(self, gateway: SimGateway) -> _Place:
        read = gateway.home.disk.cursor(self._who)
        return (0, 0) if read is None else (epoch_ordinal(read.epoch), read.seq)


def _word(keys: Keys, who: NodeId, last: Checkpoint | None, standing: Iterable[Record]) -> str:
    """The root's."""
    root, raw = keys.key(ROOT), keys.key(who).raw
    place = (
        LastPlace(epoch=last.epoch, seq=last.seq, hash=last.hash, signature=last.signature) if last else None
    )
    body = RevocationBody(
        node=who,
        public_key=base64url.encode(raw),
        last=place,
        next_epoch=NEXT_EPOCH_STEP,
        stands=stands(standing),
    )
    return sign_record(
        root.sign,
        mesh=keys.mesh,
        room_map=RoomMap.REVOCATIONS,
        key=revocation_key(thumbprint(raw), ROOT),
        signer=ROOT,
        epoch=1,
        counter=1,
        body=body,
        root_key=root.raw,
    )
