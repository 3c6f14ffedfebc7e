"""One world from its plan to its verdict: founded, troubled, calmed, judged."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from logging import ERROR
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import structlog

from gateway.crashpoint import watching
from gateway.harness.sim.agent import Outgoing, SimAgent
from gateway.harness.sim.carried import judge_carried
from gateway.harness.sim.chronicle import Chronicle
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.expulsion import Expulsion, honest_victim
from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.forgetting import given_up
from gateway.harness.sim.habits import QUIET
from gateway.harness.sim.invariants import judge, unrest
from gateway.harness.sim.liar import LIAR, OWNED, STRANGER, Liar, Victim
from gateway.harness.sim.loop import make_loop
from gateway.harness.sim.mesh import SimMesh
from gateway.harness.sim.noticejudge import judge_notices
from gateway.harness.sim.notices import draw_notices
from gateway.harness.sim.plan import Fault, Plan
from gateway.harness.sim.timeline import Timeline, TimeStandsStill
from gateway.harness.sim.troubles import Troubles
from gateway.harness.sim.upkeepjudge import judge_upkeep, unmarked
from outbox.ids import AgentId, EventId, NodeId
from outbox.records import Incident, TurnState

REST_WITHIN_S = 45 * 60
"""The bound of I4: once faults have stopped, everything has ended by then. The longest of what may have to be
waited for: the ten minutes that an event of an unknown agent is held, five hand-overs of 30 s, eight attempts
of at most a minute, five minutes of a wall clock that was wrong; and the sum of them, with room."""
_FILE_BYTES_MAX = 100_000
"""Some pieces: on the slowest links it takes a minute."""
_LOOK_EVERY_S = 15
_COMPARED_EVERY = 4
"""Looks until the journal of the next node is compared with its twin."""
_LAST_WORD_S = 5
_SHORT_MS = (2_000, 15_000, 90_000)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a world."""

    plan: Plan
    findings: tuple[Finding, ...]
    digest: str
    """Of the whole trace."""
    trace: tuple[str, ...]
    """Its end."""
    simulated_s: float
    rest_s: float
    """How long after the faults everything had ended."""
    sent: int
    handed: int
    deaths: int
    faults: int

    @property
    def ok(self) -> bool:
        """Whether every promise was kept."""
        return not self.findings


class World:
    """Everything that exists for one seed."""

    def __init__(self, plan: Plan, *, echo: Callable[[str], None] | None = None) -> None:
        self.plan = plan
        self.timeline = Timeline()
        self.chronicle = Chronicle(lambda: self.timeline.now_us, echo=echo)
        self._files = TemporaryDirectory(prefix="world-") if Fault.SQLITE in plan.faults else None
        folder = Path(self._files.name) if self._files is not None else None
        self.mesh = SimMesh(plan, self.timeline, self.chronicle, folder)
        self.loop = make_loop(self.timeline, lambda what, _error: self._stumbled(what))
        self.troubles = Troubles(self.mesh, self.loop)
        self._looks = 0
        self._watches_floors = {Fault.JUMP, Fault.CLOCK_STOP}.isdisjoint(plan.faults)
        """By wall clocks that only stand wrong: how long a link is up is read from them."""
        self._watch_incidents()
        self.liars = [
            self._liar(name)
            for name, fault in ((LIAR, Fault.LIAR), (STRANGER, Fault.STRANGER))
            if fault in plan.faults
        ]

        out = [NodeId(LIAR)] if Fault.REVOKE in plan.faults else []
        out += [honest_victim(self.mesh)] if Fault.EXPEL in plan.faults else []
        self.expulsions = [Expulsion(self.mesh, self.loop, who) for who in out]

    def run(self) -> Verdict:
        """Live through it."""
        with watching(self.mesh.trap), _listening(self.mesh):
            rest_us = self._live()
            for home in self.mesh.homes.values():
                home.disk.compare()
            findings = tuple(self.mesh.witness.findings or self._judged())
            self._close()
        for finding in findings:
            self.chronicle.note("world", "verdict", str(finding))
        return Verdict(
            plan=self.plan,
            findings=findings,
            digest=self.chronicle.digest(),
            trace=tuple(self.chronicle.lines),
            simulated_s=self.timeline.now_us / 1e6,
            rest_s=rest_us / 1e6,
            sent=len(self.mesh.witness.told),
            handed=self.mesh.witness.handed_count,
            deaths=self.mesh.deaths,
            faults=self.troubles.begun,
        )

    def _live(self) -> int:
        """From the beginning until all is at rest; how long that took after the faults, in microseconds."""
        stopped_us = self.plan.minutes * 60_000_000
        try:
            self._begin()
            self.timeline.run_until(stopped_us)
            self._calm()
            self._rest(stopped_us)
        except TimeStandsStill as still:
            self.mesh.witness.find(Promise.EVERY_SEND_ENDS, str(still))
        return max(0, self.timeline.now_us - stopped_us)

    def _watch_incidents(self) -> None:
        for name, home in self.mesh.homes.items():
            home.disk.noted = partial(self._noted, name)

    def _noted(self, name: NodeId, incident: Incident) -> None:
        found = [*unmarked(self.mesh.homes[name].disk, incident)]
        if self._watches_floors:
            found += given_up(self.mesh, name, incident)
        for finding in found:
            self.mesh.witness.find(finding.promise, finding.what)

    def _judged(self) -> Iterator[Finding]:
        yield from judge(self.mesh, self.liars)
        yield from judge_carried(self.mesh)
        yield from judge_notices(self.mesh)
        yield from judge_upkeep(self.mesh)
        for expulsion in self.expulsions:
            yield from expulsion.judge()

    # --- chapters

    def _begin(self) -> None:
        dice = Dice(self.plan.seed, "start")
        for name in self.mesh.names:
            clock = self.mesh.homes[name].clock
            if Fault.SKEW in self.plan.faults:
                clock.offset_ms = dice.between(-60_000, 60_000)
            self.loop.call_later(dice.between(0, 5_000) / 1000, self.mesh.start, name)
        self._talk()
        self.troubles.start()
        for liar in self.liars:
            liar.loop.call_soon(liar.start)
        for expulsion in self.expulsions:
            expulsion.begin()
        self._look()

    def _talk(self) -> None:
        dice, crowd = Dice(self.plan.seed, "messages"), Dice(self.plan.seed, "several")
        files = Dice(self.plan.seed, "files")
        everybody = [agent for agents in self.mesh.agents.values() for agent in agents]
        for number in range(self.plan.messages):
            sender = dice.among(everybody)
            reader = dice.among([agent for agent in everybody if agent is not sender])
            short = dice.chance(0.3) and Fault.SHORT_LIFE in self.plan.faults
            to: str = reader.name
            if Fault.SEVERAL in self.plan.faults and crowd.chance(0.3):
                to = "*" if crowd.chance(0.5) else ",".join(crowd.among(everybody).name for _ in range(3))
            priority = dice.between(0, 4)
            size = files.between(1, _FILE_BYTES_MAX) if self.mesh.files and files.chance(0.4) else 0
            expires_ms = dice.among(_SHORT_MS) if short else None
            message = Outgoing(f"m{number}", to, priority, expires_ms, size)
            at_s = 5 + dice.fraction() * (self.plan.minutes * 60 - 10)
            self.loop.call_later(at_s, sender.want, message)
        if Fault.REVOKE in self.plan.faults:
            self._talk_to_the_liar(everybody)
        if Fault.REPORTS in self.plan.faults:
            for at_s, teller, notice in draw_notices(self.plan.seed, self.plan.minutes, len(everybody)):
                self.loop.call_later(at_s, everybody[teller].want, notice)

    def _talk_to_the_liar(self, everybody: Sequence[SimAgent]) -> None:
        """Before and after it is put out."""
        dice = Dice(self.plan.seed, "messages to the liar")
        for number in range(self.plan.messages // 4):
            message = Outgoing(f"z{number}", OWNED, dice.between(0, 4), None)
            at_s = 5 + dice.fraction() * (self.plan.minutes * 60 - 10)
            self.loop.call_later(at_s, dice.among(everybody).want, message)

    def _look(self) -> None:
        self.mesh.witness.look()
        self._looks += 1
        if self._looks % _COMPARED_EVERY == 0:
            names = self.mesh.names
            self.mesh.homes[names[self._looks // _COMPARED_EVERY % len(names)]].disk.compare()
        self.loop.call_later(_LOOK_EVERY_S, self._look)

    def _calm(self) -> None:
        self.chronicle.note("world", "calm")
        self.troubles.stop()
        for expulsion in self.expulsions:
            expulsion.calm()
        self.mesh.tampering.on = False
        for name in self.mesh.names:
            for agent in self.mesh.residents(name):
                agent.habits = QUIET
        for liar in self.liars:
            liar.loop.kill()
            self.mesh.network.leave(liar.name)

    def _rest(self, stopped_us: int) -> None:
        end_us = stopped_us + REST_WITHIN_S * 1_000_000
        while (left := unrest(self.mesh)) is not None:
            if self.mesh.witness.findings:
                return  # what was seen is enough: the judge would only add what follows from it
            if self.timeline.now_us >= end_us:
                late = f"no rest {REST_WITHIN_S} s after the faults: {left.what}"
                self.mesh.witness.find(left.promise, late)
                return
            self.timeline.run_until(self.timeline.now_us + _LOOK_EVERY_S * 1_000_000)
        self.timeline.run_until(self.timeline.now_us + _LAST_WORD_S * 1_000_000)

    def _close(self) -> None:
        for gateway in self.mesh.living():
            gateway.loop.kill()
            gateway.home.disk.closed()
        for name in self.mesh.twins.running():
            self.mesh.twins.stop(name)
        self.loop.kill()
        if self._files is not None:
            self._files.cleanup()

    # --- parts

    def _liar(self, name: str) -> Liar:
        loop = make_loop(self.timeline, lambda what, _error: self._stumbled(what))
        dice = Dice(self.plan.seed, f"liar {name}")
        return Liar(
            name,
            loop,
            self.mesh.network,
            keys=self.mesh.keys,
            dice=dice,
            targets=self.mesh.names,
            victims=self._victims,
            blobs=self.mesh.witness.blobs_named,
        )

    def _victims(self) -> list[Victim]:
        told = self.mesh.witness.told.items()
        return [
            self._victim(event, NodeId(node), reader, sent.agent)
            for event, (node, sent) in told
            if (reader := sent.node) in self.mesh.homes and not sent.nodes
        ]

    def _victim(self, event: EventId, sender: NodeId, reader: NodeId, agent: AgentId) -> Victim:
        row = self.mesh.homes[reader].disk.received(sender, event, agent)
        waiting = row is not None and row.state is TurnState.QUEUED
        return Victim(event, sender, reader, agent, waiting=waiting)

    def _stumbled(self, what: str) -> None:
        self.mesh.witness.find(Promise.NO_CRASH, f"the simulation itself: {what}")


@contextmanager
def _listening(mesh: SimMesh) -> Iterator[None]:
    """Hear what the program logs as an error, and let nothing be printed."""
    before = structlog.get_config()
    structlog.configure(processors=[mesh.hear], wrapper_class=structlog.make_filtering_bound_logger(ERROR))
    try:
        yield
    finally:
        structlog.configure(**before)
