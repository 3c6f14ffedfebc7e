"""``gateway harness run`` from its beginning to its verdict."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path

import msgspec

from gateway.clock import Clock
from gateway.fleet.directory import empty_directory
from gateway.fleet.progress import Progress, make_progress
from gateway.fleet.waiting import comes_true
from gateway.harness.real.cables import CableNetwork
from gateway.harness.real.equipment import check_network, missing
from gateway.harness.real.habit import Habit
from gateway.harness.real.injection import Injection
from gateway.harness.real.injector import Injector
from gateway.harness.real.limits import (
    ACCEPT_MS,
    CLONE_SAYS_PER_S,
    PROCESS_MS,
    REST_WITHIN_S,
    SENDS_WITHIN_S,
)
from gateway.harness.real.namespaces import NamespaceNetwork
from gateway.harness.real.net import Net
from gateway.harness.real.network import Network
from gateway.harness.real.notes import Case
from gateway.harness.real.options import Options
from gateway.harness.real.page import page
from gateway.harness.real.reading import read_all
from gateway.harness.real.result import Result, clocks_of, counts_of, ends_of, injected_of, times_of
from gateway.harness.real.schedule import schedule
from gateway.harness.real.screen import show, show_json
from gateway.harness.real.site import Site
from gateway.harness.real.talk import Talk, lines, steady
from gateway.harness.real.verdict import judge
from gateway.harness.real.worker import Worker
from gateway.home import Home
from gateway.judging.agreement import disagreements
from gateway.judging.collected import as_collected
from gateway.judging.faults import Fault, FaultKind
from gateway.judging.reporting import check_parts, collect, promises, report
from gateway.judging.story import tell
from gateway.judging.witness import Witness
from outbox.errors import MeshError
from outbox.groups import first_of
from outbox.ids import NodeId
from spark.job import STEPS


def run(options: Options) -> int:
    """Play it; 0 when every promise was kept, 1 otherwise. Raises ConfigError, FleetFailed."""
    clock = Clock()
    root = empty_directory(options.directory, "gateway-harness-")
    with make_progress(clock) as progress:
        result = Harness(options, root, clock, progress).play()
    (show_json if options.json else show)(result)
    return 0 if result.ok else 1


class Harness:
    """One run."""

    def __init__(self, options: Options, root: Path, clock: Clock, progress: Progress) -> None:
        self._options = options
        self._root = root
        self._clock = clock
        self._progress = progress
        self._begun_ms = clock.mono_ms()
        self._nodes = [NodeId(f"n{number}") for number in range(1, options.nodes + 1)]
        check_network(options.net)
        if options.report:
            check_parts()
        self._skipped = missing(options.faults, options.net)
        faults = [fault for fault in options.faults if fault not in self._skipped]
        self._schedule = schedule(options.seed, self._nodes, options.duration_s * 1_000, faults)
        self._witness = Witness()
        self._injected: list[Injection] = []
        self._rested = False
        self._unanswered = 0
        self._talk_begun_ms: int | None = None
        self._log = (root / "faults.log").open("w", encoding="utf-8")

    def play(self) -> Result:
        """Everything up to the verdict; afterwards nothing of it runs any more. Raises FleetFailed."""
        for fault, reason in self._skipped.items():
            self._tell(f"cannot inject {fault}: {reason}")
        for injection in self._schedule:
            self._tell(f"planned: {injection.line}")
        try:
            site, case = asyncio.run(self._perform())
        except BaseExceptionGroup as errors:
            failures, others = errors.split(MeshError)
            if failures is None or others is not None:
                raise
            raise first_of(failures) from None
        finally:
            self._log.flush()
        faults = (*judge(case), *self._disagreements(site, case))
        keep = self._options.keep or bool(faults)
        site.end(keep=keep)
        result = self._result(site, case, faults, kept=keep)
        (self._root / "report.html").write_text(page(result), encoding="utf-8")
        (self._root / "report.json").write_bytes(msgspec.json.encode(result))
        self._log.close()
        return result

    async def _perform(self) -> tuple[Site, Case]:
        made = NamespaceNetwork if self._options.net is Net.NS else CableNetwork
        network: Network = await made.open(self._nodes)
        site = Site(
            self._root,
            os.environ,
            self._nodes,
            network=network,
            clock=self._clock,
            tell=self._tell,
            witness=self._witness,
            company=self._company,
            engine_host=self._options.engine_host,
        )
        try:
            self._progress.begin("gateways", len(self._nodes) + 2)
            await site.begin(self._schedule, self._step())
            await self._act(site)
            differ, readmitted = await site.rooms_differ(), await site.readmitted()
        except BaseException:
            await site.stop()
            site.end(keep=True)
            raise
        await site.stop()
        self._progress.begin("verdict")
        homes = {node: process.home for node, process in site.fleet.gateways.items()}
        mesh, pasts = read_all(homes, site.rewinder.bygones, self._clock)
        return site, Case(
            mesh=mesh,
            account=self._witness.account(),
            pasts=pasts,
            marks=tuple(mark for station in site.stations.values() for mark in station.marks),
            ends=tuple(end for station in site.stations.values() for end in station.ends),
            clocks=clocks_of(self._injected),
            lives=tuple(life for station in site.stations.values() for life in station.lives),
            complaints=tuple(site.complaints()),
            readmitted=readmitted,
            rooms_differ=differ,
            unanswered=self._unanswered,
            rested=self._rested,
        )

    async def _act(self, site: Site) -> None:
        """Talk and faults, then the heal, then rest."""
        workers = [
            self._worker(habit, node, site.stations[node].process.home, self._witness)
            for node in self._nodes
            for habit in Habit
        ]
        talks = [self._talk(node, site) for node in self._nodes]
        injector = Injector(site, self._clock, self._tell)
        started_ms = self._talk_begun_ms = self._clock.mono_ms()
        self._progress.begin("talk under faults", self._options.duration_s)
        async with asyncio.TaskGroup() as tasks:
            watching = [tasks.create_task(station.watch()) for station in site.stations.values()]
            working = [tasks.create_task(worker.run()) for worker in workers]
            talking = [tasks.create_task(talk.run(started_ms)) for talk in talks]
            showing = tasks.create_task(self._follow(started_ms))
            await injector.run(self._schedule, started_ms)
            await self._until_over(started_ms)
            showing.cancel()
            self._progress.begin("heal")
            for worker in workers:
                worker.behaved = True
            await site.healed()
            await comes_true(lambda: _all_done(talking), SENDS_WITHIN_S)
            self._unanswered = sum(talk.left for talk in talks)
            self._progress.begin("until all is quiet")
            self._rested = await comes_true(site.rests, REST_WITHIN_S)
            for task in (*watching, *working, *talking):
                task.cancel()
        self._injected = injector.injected

    def _disagreements(self, site: Site, case: Case) -> tuple[Fault, ...]:
        """I9: where the Spark report tells another story than the journals."""
        if not self._options.report:
            return ()
        self._progress.begin("collect outboxes")
        lake = self._root / "lake"
        collect((process.home for process in site.fleet.gateways.values()), lake, self._clock)
        self._progress.begin("Spark report", len(STEPS))
        thresholds = promises(ACCEPT_MS, PROCESS_MS)
        summary = report(lake, self._root / "report", self._clock, thresholds, self._progress.at)
        known = as_collected(case.mesh, case.pasts)
        return disagreements(tell(known, ACCEPT_MS, PROCESS_MS), summary)

    def _worker(self, habit: Habit, node: NodeId, home: Home, witness: Witness) -> Worker:
        return Worker(habit, node, home, seed=self._options.seed, witness=witness, clock=self._clock)

    def _company(
        self, node: NodeId, home: Home, witness: Witness, for_ms: int
    ) -> list[Coroutine[None, None, None]]:
        """The agents that are at a clone, and what they say there."""
        series = f"-copy{self._clock.mono_ms()}"
        rate = CLONE_SAYS_PER_S * len(self._nodes)
        says = steady(self._options.seed, node, self._nodes, for_ms, rate, series=series)
        talk = Talk(node, home, says, witness, self._clock)
        workers = [self._worker(habit, node, home, witness) for habit in Habit]
        return [talk.run(self._clock.mono_ms()), *(worker.run() for worker in workers)]

    def _talk(self, node: NodeId, site: Site) -> Talk:
        options, home = self._options, site.stations[node].process.home
        says = lines(options.seed, node, self._nodes, options.duration_s * 1_000, options.rate)
        return Talk(node, home, says, self._witness, self._clock)

    async def _until_over(self, started_ms: int) -> None:
        left_ms = started_ms + self._options.duration_s * 1_000 - self._clock.mono_ms()
        await asyncio.sleep(max(0, left_ms) / 1000)

    async def _follow(self, started_ms: int) -> None:
        while True:
            seconds = (self._clock.mono_ms() - started_ms) // 1_000
            self._progress.at(min(seconds, self._options.duration_s))
            await asyncio.sleep(1)

    def _step(self) -> Callable[[str], None]:
        done = 0

        def tell(what: str) -> None:
            nonlocal done
            self._progress.at(done, what)
            done += 1

        return tell

    def _tell(self, what: str) -> None:
        """Into the run's log; and on the screen, where it goes by."""
        since_ms = self._clock.mono_ms() - (self._talk_begun_ms or self._clock.mono_ms())
        self._log.write(f"{since_ms / 1000:8.2f} {what}\n")
        self._log.flush()
        if self._talk_begun_ms is not None:
            self._progress.say(what)

    def _result(self, site: Site, case: Case, faults: tuple[Fault, ...], *, kept: bool) -> Result:
        options = self._options
        return Result(
            ok=not faults,
            seed=options.seed,
            nodes=options.nodes,
            duration_s=options.duration_s,
            took_s=(self._clock.mono_ms() - self._begun_ms) / 1000,
            rate=options.rate,
            counts=counts_of(case, faults),
            times=times_of(case, self._injected),
            injected=injected_of(self._injected),
            skipped={str(fault): reason for fault, reason in self._skipped.items()},
            ends=ends_of(case),
            starts=sum(station.starts for station in site.stations.values()),
            entries={node: facts.entries for node, facts in case.mesh.items()},
            schedule=tuple(injection.line for injection in self._schedule),
            faults=faults,
            repeat=options.command,
            directory=str(self._root),
            kept=kept,
            report_agrees=_agrees(faults) if options.report else None,
        )


def _agrees(faults: Iterable[Fault]) -> bool:
    return all(fault.kind is not FaultKind.REPORT for fault in faults)


async def _all_done(tasks: Sequence[asyncio.Task[None]]) -> bool:
    return all(task.done() for task in tasks)
