"""``gateway demo`` from its beginning to its verdict."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from gateway.clock import Clock
from gateway.demo.actor import Stage
from gateway.demo.cast import Cast
from gateway.demo.conversation import Conversation, parse, scaled
from gateway.demo.errors import InvalidConversation
from gateway.demo.extras import Extras, Part, Trouble, extras
from gateway.demo.limits import SLA_ACCEPT_MS, SLA_PROCESS_MS
from gateway.demo.mesh import KILLED, NODES, OTHER, SEED, DemoMesh
from gateway.demo.options import Options
from gateway.demo.result import Crash, Paths, Refused, Result, incidents_of, kinds_of
from gateway.demo.screen import show, show_json, show_kept, show_logs
from gateway.demo.verdict import Case, Verdict, judge
from gateway.fleet.directory import empty_directory
from gateway.fleet.limits import LOOK_EVERY_S
from gateway.fleet.progress import Progress, make_progress
from gateway.judging.agreement import disagreements
from gateway.judging.evidence import at_rest, deliverable, read_mesh, read_node
from gateway.judging.facts import NodeFacts
from gateway.judging.faults import Fault
from gateway.judging.reporting import check_parts, collect, promises, report
from gateway.judging.witness import Witness
from outbox.errors import MeshError
from outbox.groups import first_of
from outbox.reader import JournalReader
from spark.job import STEPS


def run(options: Options) -> int:
    """Play the demo; 0 when every promise was kept, 1 otherwise.

    Raises InvalidConversation, ConfigError, SparkMissing, JavaMissing, FleetFailed.
    """
    clock = Clock()
    conversation = scaled(_conversation(options), options.duration_ms)
    if options.report:
        check_parts()
    root = empty_directory(options.directory, "gateway-demo-")
    demo = Demo(options, conversation, root, clock)
    with make_progress(clock) as progress:
        result = demo.play(progress)
    (show_json if options.json else show)(result)
    if options.keep:
        show_kept(demo.mesh.gateways, demo.mesh.runtime, demo.talkers)
    return 0 if result.ok else 1


class Demo:
    """One run."""

    def __init__(self, options: Options, conversation: Conversation, root: Path, clock: Clock) -> None:
        self.mesh = DemoMesh(root, os.environ)
        self._options = options
        self._conversation = conversation
        self._extras: Extras = extras(conversation, seed=SEED, other=OTHER, killed=KILLED)
        self._root = root
        self._clock = clock
        self._witness = Witness()
        self._killed: list[NodeFacts] = []
        self._away_ms = 0
        self._unsaid = 0
        self._rested = False

    @property
    def talkers(self) -> tuple[str, str]:
        """An agent of the first node and one of the last, to talk to each other."""
        return self._extras.names[Part.HERALD], self._extras.names[Part.PORTER]

    def play(self, progress: Progress) -> Result:
        """Everything up to the verdict; afterwards nothing of it runs any more, unless it is to be kept."""
        with self._failures_with_logs():
            asyncio.run(self._perform(progress))
            progress.begin("verdict")
            homes = [gateway.home for gateway in self.mesh.gateways.values()]
            mesh = {facts.node: facts for facts in read_mesh(homes, self._clock)}
            case = Case(
                mesh=mesh,
                killed=tuple(self._killed),
                account=self._witness.account(),
                accept_ms=SLA_ACCEPT_MS,
                process_ms=SLA_PROCESS_MS,
                unsaid=self._unsaid,
                rested=self._rested,
            )
            verdict = judge(case)
            differences = self._report(verdict, progress) if self._options.report else None
            result = self._result(case, verdict, differences)
        self._tidy(result)
        return result

    async def _perform(self, progress: Progress) -> None:
        """Play it with the gateways running; afterwards they stop, whatever happened, or are to be kept."""
        kept = False
        try:
            await self._prepare(progress)
            await self._act(progress)
            kept = self._options.keep
        except BaseExceptionGroup as errors:
            failures, others = errors.split(MeshError)
            if failures is None or others is not None:
                raise
            raise first_of(failures) from None
        finally:
            if not kept:
                await self._stop(progress)

    async def _stop(self, progress: Progress) -> None:
        """They are stopped even when nobody can be told: a closed pipe is no reason to leave them."""
        try:
            progress.begin("stop the gateways")
        finally:
            await self.mesh.stop()

    async def _prepare(self, progress: Progress) -> None:
        names, homes = self._extras.names, self._extras.homes
        placed = {**self._conversation.homes, **{names[part]: homes[part] for part in Part}}
        progress.begin("three gateways", len(NODES) + 3)
        done = 0

        def tell(what: str) -> None:
            nonlocal done
            progress.at(done, what)
            done += 1

        await self.mesh.begin(tell)
        await self.mesh.fill(placed.items(), names[Part.DEPARTED], tell)

    async def _act(self, progress: Progress) -> None:
        stage = Stage(self._clock, self._witness, self._clock.mono_ms())
        cast = Cast(self._conversation, self._extras, self.mesh, stage)
        progress.begin("conversation", cast.lines)
        async with asyncio.TaskGroup() as tasks:
            showing = tasks.create_task(_follow(cast, progress))
            self._rested = await cast.play(self._snapshot, self._rests)
            showing.cancel()
        self._unsaid = cast.lines - cast.said
        self._away_ms = cast.away_ms or 0

    def _snapshot(self) -> None:
        """The killed gateway's journal as the kill left it."""
        home = self.mesh.gateways[KILLED].home
        events = deliverable(gateway.home for gateway in self.mesh.gateways.values())
        self._killed.append(read_node(home, self._clock, events))

    async def _rests(self) -> bool:
        self.mesh.check()
        readers = [JournalReader.open(gateway.home.journal) for gateway in self.mesh.gateways.values()]
        try:
            waits = self._witness.account().promised(Trouble.UNANSWERED)
            return at_rest(readers, () if waits is None else (waits,))
        finally:
            for reader in readers:
                reader.close()

    def _report(self, verdict: Verdict, progress: Progress) -> tuple[Fault, ...]:
        progress.begin("collect three outboxes")
        lake = self._root / "lake"
        collect((gateway.home for gateway in self.mesh.gateways.values()), lake, self._clock)
        progress.begin("Spark report", len(STEPS))
        thresholds = promises(SLA_ACCEPT_MS, SLA_PROCESS_MS)
        summary = report(lake, self._root / "report", self._clock, thresholds, progress.at)
        return disagreements(verdict, summary)

    def _result(self, case: Case, verdict: Verdict, differences: tuple[Fault, ...] | None) -> Result:
        faults = (*verdict.faults, *(differences or ()))
        messages, replies = kinds_of(verdict.states)
        return Result(
            ok=not faults,
            messages=messages,
            replies=replies,
            counts=verdict.counts,
            accepted_ms=verdict.accepted_ms,
            processed_ms=verdict.processed_ms,
            entries=verdict.entries,
            crash=Crash(node=KILLED, away_ms=self._away_ms),
            incidents=incidents_of(verdict, case.mesh),
            refused=tuple(Refused(refusal.what, refusal.hint) for refusal in case.account.refusals),
            faults=faults,
            report_agrees=None if differences is None else not differences,
            paths=self._paths(),
        )

    def _paths(self) -> Paths:
        made = self._options.report
        return Paths(
            directory=str(self._root),
            logs=str(self._root / "logs"),
            lake=str(self._root / "lake") if made else None,
            report=str(self._root / "report" / "report.html") if made else None,
        )

    @contextmanager
    def _failures_with_logs(self) -> Iterator[None]:
        try:
            yield
        except MeshError:
            self._gather_logs()
            show_logs(self.mesh.gateways.values(), str(self._root / "logs"))
            raise

    def _tidy(self, result: Result) -> None:
        """Logs into one place; the homes go, with their keys, unless somebody will want to look at them."""
        self._gather_logs()
        if result.ok and not self._options.keep:
            for gateway in self.mesh.gateways.values():
                shutil.rmtree(gateway.home.root, ignore_errors=True)

    def _gather_logs(self) -> None:
        for node, gateway in self.mesh.gateways.items():
            if gateway.home.log.exists():
                shutil.copy(gateway.home.log, self._root / "logs" / f"{node}.jsonl")


async def _follow(cast: Cast, progress: Progress) -> None:
    """Show how far the conversation is; once it is over, that the mesh comes to rest."""
    while cast.said < cast.lines:
        progress.at(cast.said)
        await asyncio.sleep(LOOK_EVERY_S)
    progress.begin("until all is quiet")


def _conversation(options: Options) -> Conversation:
    if options.messages is None:
        return parse((files("gateway.demo") / "conversation.jsonl").read_bytes(), NODES)
    try:
        content = options.messages.read_bytes()
    except OSError as error:
        raise InvalidConversation(0, f"cannot read {options.messages}: {error.strerror}") from None
    return parse(content, NODES)
