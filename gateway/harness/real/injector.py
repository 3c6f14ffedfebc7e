"""Does to gateways and ways what the schedule says, when it says so."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from gateway.clock import Clock
from gateway.fleet.errors import FleetFailed
from gateway.harness.real.faultclass import FaultClass
from gateway.harness.real.injection import Injection
from gateway.harness.real.limits import FLAP_EVERY_MS
from gateway.harness.real.place import Place
from gateway.harness.real.site import Site
from gateway.harness.real.station import Station
from gateway.harness.real.tracer import SYNCS, tampered
from gateway.judging.pasts import Way
from outbox.ids import NodeId


class Injector:
    """Every injection is one task that begins it, waits, and ends it."""

    def __init__(self, site: Site, clock: Clock, tell: Callable[[str], None]) -> None:
        self.injected: list[Injection] = []
        self.skipped: list[tuple[Injection, str]] = []
        self._stations = site.stations
        self._network = site.network
        self._disks = site.disks
        self._rewinder = site.rewinder
        self._cloner = site.cloner
        self._clock = clock
        self._tell = tell

    async def run(self, schedule: tuple[Injection, ...], started_ms: int) -> None:
        """All of it; returns after the last has ended. Raises FleetFailed."""
        async with asyncio.TaskGroup() as tasks:
            for injection in schedule:
                tasks.create_task(self._inject(injection, started_ms))

    async def _inject(self, injection: Injection, started_ms: int) -> None:
        await asyncio.sleep(max(0, started_ms + injection.at_ms - self._clock.mono_ms()) / 1000)
        reason = self._impossible(injection)
        if reason:
            self.skipped.append((injection, reason))
            self._tell(f"skipped: {injection.line} ({reason})")
            return
        self.injected.append(injection)
        self._tell(injection.line)
        async with self._fault(injection):
            if injection.fault not in _AT_ONCE:
                await asyncio.sleep(injection.for_ms / 1000)

    def _impossible(self, injection: Injection) -> str:
        """A process that is down already can have no trouble of its own."""
        if injection.fault in _OF_PROCESSES:
            station = self._stations[injection.targets[0]]
            if station.away or station.process.pid is None:
                return f"{station.node} is down"
        return ""

    def _fault(  # noqa: C901, PLR0911 - a table
        self, injection: Injection
    ) -> AbstractAsyncContextManager[None]:
        station = self._stations[injection.targets[0]]
        match injection.fault:
            case FaultClass.KILL | FaultClass.SEEDLOSS:
                return self._killed(station)
            case FaultClass.CRASH:
                return self._crashed(station, injection)
            case FaultClass.STOP:
                return self._stopped(station)
            case FaultClass.PARTITION | FaultClass.ONEWAY:
                return self._partitioned(injection.targets, both=injection.fault is FaultClass.PARTITION)
            case FaultClass.FLAP:
                return self._flapping(injection)
            case FaultClass.SLOW:
                return self._slowed(injection)
            case FaultClass.DISKFULL:
                return self._full(station)
            case FaultClass.SLOWFSYNC:
                return self._tampered(station, injection, f"delay_enter={injection.amount * 1000}")
            case FaultClass.FAILFSYNC:
                return self._tampered(station, injection, "error=EIO:when=1")
            case FaultClass.CLOCK:
                return self._off(station, injection.amount)
            case FaultClass.STORM:
                return self._storm(injection.amount)
            case FaultClass.RESTORE | FaultClass.CLONE:
                return self._forgets(station, injection)

    @asynccontextmanager
    async def _killed(self, station: Station) -> AsyncIterator[None]:
        await station.down()
        try:
            yield
        finally:
            await station.up()

    @asynccontextmanager
    async def _crashed(self, station: Station, injection: Injection) -> AsyncIterator[None]:
        if await station.crash(f"{injection.point}:{injection.amount}", injection.for_ms / 1000):
            self._tell(f"{station.node} died at {injection.point}")
        else:
            self._tell(f"{station.node} did not pass {injection.point} so often and was killed")
        yield

    @asynccontextmanager
    async def _stopped(self, station: Station) -> AsyncIterator[None]:
        station.process.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            station.process.signal(signal.SIGCONT)

    @asynccontextmanager
    async def _partitioned(self, targets: tuple[NodeId, ...], *, both: bool) -> AsyncIterator[None]:
        source, target = targets
        ways = [(source, target), (target, source)] if both else [(source, target)]
        for way in ways:
            await self._network.block(*way)
        try:
            yield
        finally:
            for way in ways:
                await self._network.unblock(*way)

    @asynccontextmanager
    async def _flapping(self, injection: Injection) -> AsyncIterator[None]:
        async def flap() -> None:
            for _ in range(max(1, injection.for_ms // FLAP_EVERY_MS)):
                await self._network.snap(*injection.targets)
                await asyncio.sleep(FLAP_EVERY_MS / 1000)

        async with asyncio.TaskGroup() as tasks:
            flapping = tasks.create_task(flap())
            yield
            flapping.cancel()

    @asynccontextmanager
    async def _slowed(self, injection: Injection) -> AsyncIterator[None]:
        one, other = injection.targets
        await self._network.slow(one, other, injection.amount)
        try:
            yield
        finally:
            await self._network.slow(one, other, 0)

    @asynccontextmanager
    async def _full(self, station: Station) -> AsyncIterator[None]:
        disk = self._disks[station.node]
        with station.troubled(FaultClass.DISKFULL):
            await asyncio.to_thread(disk.fill)
            try:
                yield
            finally:
                await asyncio.to_thread(disk.free)

    @asynccontextmanager
    async def _tampered(self, station: Station, injection: Injection, syncs: str) -> AsyncIterator[None]:
        pids = station.process.pids
        assert pids, "it was looked at a moment ago"
        with station.troubled(injection.fault):
            async with AsyncExitStack() as stack:
                try:
                    await stack.enter_async_context(tampered(pids, f"{SYNCS}:{syncs}"))
                except FleetFailed as failed:
                    self._tell(f"{station.node}: {failed}")
                yield
        station.process.signal(signal.SIGCONT)  # whatever a tracer that was cut short left behind

    @asynccontextmanager
    async def _off(self, station: Station, seconds: int) -> AsyncIterator[None]:
        station.off_by(seconds)
        await station.again(orderly=False)
        try:
            yield
        finally:
            station.off_by(0)
            await station.again(orderly=True)

    @asynccontextmanager
    async def _storm(self, rounds: int) -> AsyncIterator[None]:
        for number in range(rounds):
            async with asyncio.TaskGroup() as tasks:
                for station in self._stations.values():
                    tasks.create_task(station.again(orderly=number % 2 == 1))
        yield

    def _forgets(self, station: Station, injection: Injection) -> AbstractAsyncContextManager[None]:
        if injection.fault is FaultClass.CLONE:
            return self._cloned(station, injection)
        return self._put_back(station, injection)

    @asynccontextmanager
    async def _put_back(self, station: Station, injection: Injection) -> AsyncIterator[None]:
        saved = await self._rewinder.save(station, Way(injection.point))
        yield
        async with AsyncExitStack() as stack:
            if injection.amount:
                await stack.enter_async_context(self._alone(station.node))
            await self._rewinder.put_back(station, saved)
            await asyncio.sleep(injection.amount / 1000)

    @asynccontextmanager
    async def _alone(self, node: NodeId) -> AsyncIterator[None]:
        """Its agents are there before anybody who could tell it what it has forgotten."""
        async with AsyncExitStack() as stack:
            for other in self._stations:
                if other != node:
                    await stack.enter_async_context(self._partitioned((node, other), both=True))
            yield

    @asynccontextmanager
    async def _cloned(self, station: Station, injection: Injection) -> AsyncIterator[None]:
        with station.troubled(FaultClass.CLONE):
            async with self._cloner.beside(station, Place(injection.point), injection.for_ms):
                yield


_AT_ONCE = frozenset({FaultClass.CRASH})
"""Over as soon as they have happened."""

_OF_PROCESSES = frozenset(
    {
        FaultClass.KILL,
        FaultClass.CRASH,
        FaultClass.STOP,
        FaultClass.DISKFULL,
        FaultClass.SLOWFSYNC,
        FaultClass.FAILFSYNC,
        FaultClass.CLOCK,
        FaultClass.SEEDLOSS,
        FaultClass.RESTORE,
        FaultClass.CLONE,
    }
)
