"""The liar of a world is put out by the root: some time later nobody takes or says anything more.

Who has not heard of it yet, behind a partition, may go on until it has. What it said up to the place that the
root names counts, and may be read whenever it comes, from whoever has it.
"""

from collections.abc import Iterator

from gateway.door import PIPE_ROOM
from gateway.engine.limits import ENDED_UNREAD_AFTER_MS
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
from stateroom.bodies import ROOT, LastPlace, RevocationBody, RoomMap, revocation_key
from stateroom.limits import NEXT_EPOCH_STEP
from stateroom.records import parse_record, sign_record, thumbprint
from stateroom.revocations import stands

_AGAIN_S = 5.0
_LOOK_EVERY_S = 1.0
_CUT_OFF_US = 3_000_000
"""Of nodes that never stand still: what was under way, and a moment to be told why."""
_SETTLED_US = 15_000_000
"""Until the engine has seen what the room knows, behind a slow disk."""
_ENDED_US = _SETTLED_US + 1_000 * ENDED_UNREAD_AFTER_MS
"""Of a process: until nothing more is owed to it, whether or not somebody brings what it had said before."""
_STANDING_STILL = frozenset({Fault.STOP, Fault.SLOW_DISK, Fault.DISK_FULL, Fault.ASIDE})
_WHO = NodeId(LIAR)
_Place = tuple[int, int]


class Expulsion:
    """Of one world."""

    def __init__(self, mesh: SimMesh, loop: SimLoop) -> None:
        self._mesh = mesh
        self._loop = loop
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
        """Let it happen in the first half of the world, once somebody has read what the liar says."""
        dice = Dice(self._mesh.plan.seed, "expulsion")
        self._loop.call_later(dice.between(20, self._mesh.plan.minutes * 30), self._try, dice)
        self._loop.call_later(_LOOK_EVERY_S, self._look)

    def calm(self) -> None:
        """The faults are over: what is owed to the liar ends with a word of the root only, so it says it now,
        or again if all who had heard it were put back."""
        self._calm = True

    def _try(self, dice: Dice) -> None:
        self._loop.call_later(_AGAIN_S, self._try, dice)
        running = [gateway for gateway in self._mesh.living() if gateway.digest()]
        read = [gateway for gateway in running if gateway.home.disk.signed_cursor(_WHO) is not None]
        if not running or not (read or self._calm) or not self._is_needed():
            return
        gateway = dice.among(read or running)
        last = gateway.home.disk.signed_cursor(_WHO)
        self._named = (epoch_ordinal(last.epoch), last.seq) if last is not None else (0, 0)
        self._mesh.chronicle.note(gateway.name, "revokes", f"{LIAR} up to {self._named[1]}")
        gateway.loop.call_soon(gateway.rooms.hear, (_word(self._mesh.keys, last),))
        self._said = True

    def _is_needed(self) -> bool:
        """It was not said, or to nobody who is there; who was not put back since is not told twice."""
        remember = {self._name(gateway) for gateway in self._mesh.living()}
        return not self._said or (self._calm and self._knew_us.keys().isdisjoint(remember))

    def _knows(self, gateway: SimGateway) -> int | None:
        """Since when."""
        if not gateway.digest() or not gateway.rooms.revocations():
            return None
        return self._knew_us.setdefault(self._name(gateway), self._mesh.timeline.now_us)

    def _name(self, gateway: SimGateway) -> tuple[NodeId, int]:
        return NodeId(gateway.name), gateway.home.went_back_as

    def _look(self) -> None:
        self._loop.call_later(_LOOK_EVERY_S, self._look)
        for gateway in self._mesh.living():
            since_us = self._knows(gateway)
            if since_us is not None:
                self._look_at_owed(gateway)
            if since_us is not None and self._mesh.timeline.now_us - since_us >= _SETTLED_US:
                place = _place(gateway)
                if place > self._read.setdefault(self._name(gateway), max(place, self._named)):
                    what = f"{gateway.name} reads on what {LIAR} says, whom it knows to be out"
                    self._mesh.witness.find(Promise.MEMBERS_ONLY, what)

    def _look_at_owed(self, gateway: SimGateway) -> None:
        """What was on its way ends soon, and not when each message has waited for long enough."""
        since_us = self._runs.setdefault(gateway, self._mesh.timeline.now_us)
        if self._stands_still() or self._mesh.timeline.now_us - since_us <= _ENDED_US:
            return
        for row in gateway.home.disk.unaccepted(OWNED, _WHO, 1):
            what = f"{gateway.name} still waits for {row.event_id} of {LIAR}, whom it knows to be out"
            self._mesh.witness.find(Promise.EVERY_SEND_ENDS, what)

    def _stands_still(self) -> bool:
        return not _STANDING_STILL.isdisjoint(self._mesh.plan.faults)

    def _taps(self, end: WireEnd, message: bytes) -> None:
        self._tap(end, message)
        gateway = self._mesh.gateways.get(NodeId(end.owner.name))
        if gateway is None or end.other.owner.name != LIAR or end.wire.channel != PIPE_ROOM:
            return
        since_us = self._knows(gateway)
        if (
            since_us is not None
            and not self._stands_still()
            and self._mesh.timeline.now_us - since_us > _CUT_OFF_US
        ):
            what = f"{gateway.name} still speaks with {LIAR}, whom it knows to be out"
            self._mesh.witness.find(Promise.MEMBERS_ONLY, what)

    def judge(self) -> Iterator[Finding]:
        """At the end everybody knows if anybody does, and somebody does unless all who did were put back."""
        told = {self._name(gateway): bool(gateway.rooms.revocations()) for gateway in self._mesh.living()}
        if any(told.values()) and not all(told.values()):
            yield Finding(Promise.MEMBERS_ONLY, f"not everybody knows that {LIAR} is out")
        if not any(told.values()) and not self._knew_us.keys().isdisjoint(told):
            yield Finding(Promise.MEMBERS_ONLY, f"everybody has forgotten that {LIAR} is out")


def _place(gateway: SimGateway) -> _Place:
    read = gateway.home.disk.cursor(_WHO)
    return (0, 0) if read is None else (epoch_ordinal(read.epoch), read.seq)


def _word(keys: Keys, last: Checkpoint | None) -> str:
    """The root's."""
    root, raw = keys.key(ROOT), keys.key(LIAR).raw
    place = (
        LastPlace(epoch=last.epoch, seq=last.seq, hash=last.hash, signature=last.signature) if last else None
    )
    body = RevocationBody(
        node=LIAR,
        public_key=base64url.encode(raw),
        last=place,
        next_epoch=NEXT_EPOCH_STEP,
        stands=stands((parse_record(keys.ownership(OWNED, _WHO)),)),
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
