"""A second process of a node, on a copy of its home, with agents of its own; then it is stopped for good."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager

from gateway.clock import Clock
from gateway.fleet.errors import FleetFailed
from gateway.fleet.ports import free_ports
from gateway.fleet.process import GatewayProcess
from gateway.founding import write_settings
from gateway.harness.real.bygone import Bygone
from gateway.harness.real.homecopy import copy_home, keep_journal
from gateway.harness.real.place import Place
from gateway.harness.real.rewinding import Rewinder, free
from gateway.harness.real.station import Station
from gateway.home import Home
from gateway.judging.pasts import Way
from gateway.judging.witness import Witness
from outbox.ids import NodeId

Company = Callable[[NodeId, Home, Witness, int], Sequence[Coroutine[None, None, None]]]
"""The agents of a node as they live on a home, and what they say there within so many milliseconds."""


class Cloner:
    """Of one run; ``settings`` are those of each node."""

    def __init__(
        self,
        rewinder: Rewinder,
        settings: Mapping[NodeId, Mapping[str, object]],
        company: Company,
        tell: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self.clones: list[GatewayProcess] = []
        self._rewinder = rewinder
        self._settings = settings
        self._company = company
        self._tell = tell
        self._clock = clock

    @asynccontextmanager
    async def beside(self, station: Station, place: Place, for_ms: int) -> AsyncIterator[None]:
        """While in here the node runs twice. Raises FleetFailed."""
        kept = self._rewinder.place(station.node)
        clone = station.process.beside(kept / "home", kept / "stderr.log")
        self.clones.append(clone)
        since_ms, witness = self._clock.wall_ms(), Witness()
        await self._part(station, clone, place)
        base = await asyncio.to_thread(keep_journal, clone.home.root, kept / "base")
        try:
            if place is Place.INSTEAD:
                await station.up()
            async with asyncio.TaskGroup() as tasks:
                company = self._company(station.node, clone.home, witness, for_ms)
                living = [tasks.create_task(life) for life in (self._start(clone), *company)]
                yield
                for life in living:
                    life.cancel()
        finally:
            clone.kill()
            await free(clone.home)
            lost = await asyncio.to_thread(keep_journal, clone.home.root, kept / "lost")
            self._rewinder.gave_up(
                Bygone(
                    node=station.node,
                    way=Way.CLONE,
                    order=self._rewinder.moment(),
                    since_ms=since_ms,
                    base=base,
                    lost=lost,
                    account=witness.account(),
                )
            )
            if place is Place.INSTEAD:
                await self._come_back(station)

    async def _part(self, station: Station, clone: GatewayProcess, place: Place) -> None:
        """Copy the home, and move one of the two to a port that nobody knows; that one runs then."""
        if place is Place.BESIDE:
            await self._rewinder.image(station, clone.home.root)
            self._hide(station.node, clone.home)
        else:
            await station.down()
            await free(station.process.home)
            await asyncio.to_thread(copy_home, station.process.home, clone.home.root)
            self._hide(station.node, station.process.home)

    def _hide(self, node: NodeId, home: Home) -> None:
        """It says all the same that it is where it was: both tell the same address."""
        (port,) = free_ports(1)
        write_settings(home, {**self._settings[node], "listen.port": port})

    async def _start(self, clone: GatewayProcess) -> None:
        try:
            await clone.start()
        except FleetFailed as failed:
            self._tell(f"the copy of {clone.node}: {failed}")

    async def _come_back(self, station: Station) -> None:
        await station.down()
        write_settings(station.process.home, dict(self._settings[station.node]))
        await station.up()
