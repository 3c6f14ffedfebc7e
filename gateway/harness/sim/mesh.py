"""The nodes of a simulated world: homes, processes and agents, and their deaths and restarts."""

import asyncio
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import structlog

from gateway.courier.limits import CourierLimits
from gateway.crashpoint import CrashPoint
from gateway.engine.own_stream import Reason
from gateway.harness.sim.agent import SimAgent
from gateway.harness.sim.announcements import Announcements
from gateway.harness.sim.chronicle import Chronicle
from gateway.harness.sim.clocks import SimClock
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.disk import Disk
from gateway.harness.sim.findings import Promise
from gateway.harness.sim.gateway import SimGateway, SimHome
from gateway.harness.sim.habits import BAD, ECHOING, GOOD
from gateway.harness.sim.journalfile import disk_of
from gateway.harness.sim.liar import LIAR, OWNED, STRANGER
from gateway.harness.sim.loop import SimLoop, make_loop
from gateway.harness.sim.memories import Memories
from gateway.harness.sim.network import Network, Weather
from gateway.harness.sim.operating import operate
from gateway.harness.sim.plan import Fault, Plan
from gateway.harness.sim.policies import policy_of
from gateway.harness.sim.room import Stored
from gateway.harness.sim.signing import Keys
from gateway.harness.sim.standins import StandIns, engaged_elsewhere
from gateway.harness.sim.stores import room_for_blobs
from gateway.harness.sim.tampering import Tampering
from gateway.harness.sim.timeline import Timeline
from gateway.harness.sim.topology import topology_of
from gateway.harness.sim.trips import Trips
from gateway.harness.sim.twins import Twins, found_a_copy
from gateway.harness.sim.wire import WireEnd
from gateway.harness.sim.witness import TAG_WITHIN, Witness
from gateway.wire.codec import decode
from gateway.wire.frames import Pong
from outbox.chain import Entry
from outbox.ids import AgentId, Epoch, NodeId
from outbox.records import Identity, Received, Share
from stateroom.bodies import NodeBody, RoomMap
from stateroom.records import sign_record

EPOCH = Epoch("000001-000000000001")
_SMALL_INBOX = CourierLimits(max_depth=3)


class SimMesh:
    """All honest nodes of one world."""

    def __init__(
        self, plan: Plan, timeline: Timeline, chronicle: Chronicle, folder: Path | None = None
    ) -> None:
        """``folder``: where journals lie that are files."""
        self.plan = plan
        self._folder = folder
        self.timeline = timeline
        self.chronicle = chronicle
        self.dice = Dice(plan.seed, "mesh")
        self.keys = Keys()
        self.names = [NodeId(f"n{number}") for number in range(1, plan.nodes + 1)]
        fair = Weather(self.dice.among((1_000, 10_000, 60_000)), 0)
        self.network = Network(timeline, Dice(plan.seed, "network"), fair)
        self.topology = topology_of(plan, self.names)
        self.tampering = Tampering(self.topology, Dice(plan.seed, "tampering"), chronicle)
        self.network.alter, self.network.meet = self.tampering.alter, self.topology.meet
        fileless = {Fault.OLD_VERSION, Fault.RESTORE, Fault.CLONE, Fault.EXPEL}
        self.files = Fault.BLOBS in plan.faults and fileless.isdisjoint(plan.faults)
        """Some messages are files."""
        self.homes = {name: self._home(name) for name in self.names}
        self.memories = Memories({str(name): home for name, home in self.homes.items()}, chronicle)
        self.outcasts: set[NodeId] = set()
        """Honest nodes that were put out: nothing is promised to them any more."""
        self.witness = Witness(self.memories, chronicle, frozenset({LIAR, STRANGER}))
        self.witness.outcasts = self.memories.outcasts = self.outcasts
        self.witness.old_may_read_all = not self.topology.refused
        self.twins = Twins(self.network, plan.seed)
        self.trips = Trips()
        self.network.tap, self.network.heard = self._tap, self._heard
        self.witness.watch_blobs(
            {str(name): home.blobs for name, home in self.homes.items()}, self.topology.mirrors
        )
        if {Fault.STOP, Fault.SLOW_DISK}.isdisjoint(plan.faults):
            self.witness.watch_leases(timeline, CourierLimits().lease_ms)
        self.agents = {
            name: [self._agent(name, n) for n in range(plan.agents_per_node)] for name in self.names
        }
        self.stand_ins = self._stand_ins()
        self.guests = {name: self._guests(name) for name in self.names}
        """Agents of others that a node stands in for."""
        self.away: set[AgentId] = set()
        """Agents that the operator has taken away for a while."""
        self.announcements = {name: Announcements() for name in self.names}
        """Of maintenance, by the operator of each node."""
        self.gateways: dict[NodeId, SimGateway] = {}
        self.deaths = 0
        self.mended: Callable[[NodeId], None] = lambda _node: None
        """Hears which node has ended and can start again: its copy was stopped."""
        self._found()

    def _home(self, name: NodeId) -> SimHome:
        identity = Identity(self.keys.mesh, name, EPOCH)
        clock = SimClock(self.timeline, Dice(self.plan.seed, f"entropy of {name}"))
        find = lambda *found: self.witness.find(*found)  # noqa: E731, PLW0108 - there is no witness yet
        disk = disk_of(identity, self._folder, find)
        home = SimHome(identity, disk, clock, self.keys)
        if Fault.SMALL_INBOX in self.plan.faults:
            home.limits = _SMALL_INBOX
        home.policy = policy_of(self.plan, copies=name in self.topology.mirrors, files=self.files)
        if self.files:
            home.blobs_bytes_max = room_for_blobs(self.plan, name)
        if Fault.ASIDE in self.plan.faults and Dice(self.plan.seed, f"host of {name}").chance(0.5):
            home.trips = Dice(self.plan.seed, f"trips of {name}")
        return home

    def _agent(self, name: NodeId, number: int) -> SimAgent:
        agent = AgentId(f"{name}-a{number}")
        habits = BAD if Fault.BAD_AGENTS in self.plan.faults else GOOD
        if Fault.ECHO in self.plan.faults and number == 0:
            habits = ECHOING
        return SimAgent(agent, habits, Dice(self.plan.seed, agent), self.witness)

    def _stand_ins(self) -> StandIns | None:
        if Fault.FALLBACK not in self.plan.faults:
            return None
        named = {node: [agent.name for agent in agents] for node, agents in self.agents.items()}
        self.witness.stand_ins = found = StandIns(self.plan.seed, named)
        found.outcasts = self.outcasts
        for name, home in self.homes.items():
            home.beats = True
            home.disk.written = partial(self._written, name)
            home.disk.dealt = partial(self._dealt, name)
        return found

    def _guests(self, node: NodeId) -> list[SimAgent]:
        if self.stand_ins is None:
            return []
        return [
            SimAgent(agent, GOOD, Dice(self.plan.seed, f"{agent} at {node}"), self.witness)
            for agent, fallback in self.stand_ins.fallback.items()
            if fallback == node
        ]

    def members(self) -> list[NodeId]:
        """Honest nodes that were not put out."""
        return [name for name in self.names if name not in self.outcasts]

    def residents(self, node: NodeId) -> list[SimAgent]:
        """Its own agents, and those that it stands in for."""
        return [*self.agents[node], *self.guests[node]]

    def _written(self, node: NodeId, entry: Entry) -> None:
        gateway = self.gateways.get(node)
        if gateway is None or self.stand_ins is None:
            return
        finding = self.stand_ins.early(self.homes[node].disk, entry, gateway.unheard_ms)
        if finding is not None:
            self.witness.find(finding.promise, finding.what)

    def _dealt(self, node: NodeId, turn: Received) -> None:
        if turn.source not in self.homes or turn.share is not Share.SOLE:
            return  # of what is for several each node has attempts of its own
        read, writer = self.homes[node].disk.cursor(turn.source), self.homes[turn.source].disk
        if read is not None and writer.head_at(read.epoch, read.seq) == read:  # else another history
            finding = engaged_elsewhere(writer, node, (read.epoch, read.seq), turn.event_id)
            if finding is not None:
                self.witness.find(finding.promise, finding.what)

    def _found(self) -> None:
        """Everybody is admitted and knows where everybody is."""
        members = [*self.names, NodeId(LIAR)]
        admissions: Stored = {(RoomMap.ADMISSIONS, node): self._admission(node) for node in members}
        addresses: Stored = {(RoomMap.NODES, node): self._address(node) for node in self.names}
        owned: Stored = {(RoomMap.AGENTS, OWNED): self.keys.ownership(OWNED, NodeId(LIAR))}
        for home in self.homes.values():
            home.stored.update(admissions)
            home.stored.update(addresses)
            home.stored.update(owned if Fault.REVOKE in self.plan.faults else {})

    def _admission(self, node: NodeId) -> str:
        """Who carries files for others is a seed; whoever else keeps copies was admitted for that, and so was
        everybody in a mesh of which a part cannot be given less than all, unless that part is refused."""
        carries, topology = node in self.topology.mirrors, self.topology
        reads_all = carries or (node in self.names and bool(topology.old) and not topology.refused)
        return self.keys.admission(node, "seed" if self.files and carries else "member", reads_all=reads_all)

    def _address(self, node: NodeId) -> str:
        body = NodeBody(
            endpoints=(f"http://{node}",), outbox_epoch=EPOCH, head_seq=0, head_hash="", software=""
        )
        return sign_record(
            self.keys.key(node).sign,
            mesh=self.keys.mesh,
            room_map=RoomMap.NODES,
            key=node,
            signer=node,
            epoch=1,
            counter=1,
            body=body,
        )

    # --- processes

    def start(self, name: NodeId) -> None:
        """A process of the node begins."""
        if name in self.gateways:
            return
        loop = make_loop(self.timeline, lambda what, error: self._stumbled(name, what, error))
        gateway = SimGateway(self.homes[name], self.network, loop)
        gateway.residents = [partial(operate, self), *(agent.live for agent in self.residents(name))]
        gateway.on_exit = lambda error: self._ended(name, error)
        loop.on_death = lambda: self.kill(name)
        self.homes[name].disk.busy = gateway.busy
        self.gateways[name] = gateway
        self.chronicle.note(name, "starts")
        loop.call_soon(gateway.start)

    def kill(self, name: NodeId, *, lose_commit: bool = False) -> None:
        """The process of the node dies; what was in its last commit may be lost with it."""
        gateway = self.gateways.pop(name, None)
        if gateway is None:
            return
        self.deaths += 1
        self.chronicle.note(name, "dies", "with its last commit" if lose_commit else "")
        gateway.loop.kill()
        self.network.leave(name)
        disk = self.homes[name].disk
        disk.closed()
        self.homes[name].blobs.crash()
        if lose_commit:
            disk.lose_last_commit()

    def clone(self, name: NodeId) -> None:
        """The home of the node is started a second time."""
        loop = make_loop(self.timeline, lambda what, error: self._stumbled(name, what, error))
        self.chronicle.note(name, "copied")
        gateway = self.twins.start(self.homes[name], [agent.name for agent in self.agents[name]], loop)
        gateway.on_exit = lambda error: self._twin_ended(name, error)
        self.witness.copied(name)

    def stop_twins(self) -> None:
        """Operators have found the copies; each original goes on."""
        for name in self.twins.running():
            self._stop_twin(name)

    def _stop_twin(self, name: NodeId) -> None:
        if self.twins.stop(name):
            self.chronicle.note(name, "copy stops")

    def _twin_ended(self, name: NodeId, error: BaseException | None) -> None:
        if found_a_copy(error):
            self._stop_twin(name)
        else:
            self._ended(name, error)

    def _tap(self, end: WireEnd, message: bytes) -> None:
        if not self.twins.speaks(end):
            self.witness.tap(end, message)

    def _heard(self, end: WireEnd, message: bytes) -> None:
        """By answers to pings nodes measure the clocks of others: the judge has to know how exactly."""
        self.tampering.heard(end, message)
        if b'"t":"pong"' not in message[:TAG_WITHIN] or self.twins.speaks(end):
            return
        name, peer = NodeId(end.owner.name), NodeId(end.other.owner.name)
        if peer not in self.homes:
            return
        frame = decode(message, end.wire.version)
        if isinstance(frame, Pong) and name in self.homes:
            clock = self.homes[name].clock
            trip_ms = clock.mono_ms() - frame.at_ms
            self.trips.heard(name, peer, end.wire.number, trip_ms, clock.wall_ms())

    def back_up(self, name: NodeId) -> tuple[Disk, Stored]:
        """What ``gateway backup`` would hold now; a transaction that dies with its process is not in it."""
        home = self.homes[name]
        return home.disk.image(), dict(home.stored)

    def restore(self, name: NodeId, image: tuple[Disk, Stored], note: Reason | None) -> None:
        """The node is what it was then: with a note that says so, or by hand."""
        self.kill(name)
        way = "from a backup" if note is Reason.RESTORE else "by hand"
        self.chronicle.note(
            name, "restored", way if note is not Reason.FAILED_SYNC else f"{way} after {note}"
        )
        self.homes[name].go_back(*image, note)
        self.homes[name].went_back_as = self.timeline.serial()
        self.witness.went_back(name)

    def living(self) -> list[SimGateway]:
        """The processes that run, by name."""
        return [self.gateways[name] for name in self.names if name in self.gateways]

    def trap(self, point: CrashPoint) -> None:
        """Watches ``gateway.crashpoint`` for all processes."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        if loop.fatal is not None:
            loop.passes(point)

    def hear(self, _logger: object, _method: str, event: structlog.typing.EventDict) -> str:
        """A processor for structlog: what the program itself calls a failure is one."""
        if event["event"] in {"tick.failed", "input.failed"}:
            self._find_bug("engine", str(event["event"]), traceback.format_exc())
        raise structlog.DropEvent

    def _ended(self, name: NodeId, error: BaseException | None) -> None:
        if name in self.twins.of and found_a_copy(error):
            self.chronicle.note(name, "ends", "since a copy of it runs")
            self._stop_twin(name)
            self.kill(name)
            self.mended(name)
            return
        self._find_bug(name, "the process ended", "".join(traceback.format_exception(error)))
        self.gateways[name].loop.doomed = True

    def _stumbled(self, name: NodeId, what: str, error: BaseException | None) -> None:
        self._find_bug(name, what, "".join(traceback.format_exception(error)))

    def _find_bug(self, name: str, what: str, details: str) -> None:
        self.witness.find(Promise.NO_CRASH, f"{name}: {what}\n{details}".rstrip())
