"""Puts a node back to what it was a while before, and keeps for the judge what it forgets by that."""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gateway.clock import Clock
from gateway.harness.real.bygone import Bygone, Known
from gateway.harness.real.homecopy import copy_home, keep_journal, put_home, take_aside
from gateway.harness.real.station import Station
from gateway.home import Home
from gateway.judging.pasts import Way
from gateway.judging.witness import Witness
from outbox.ids import NodeId
from outbox.lock import HomeLock
from outbox.reader import JournalReader
from outbox.records import Delivery, DeliveryState

_ALL = 1_000_000


class Saved(NamedTuple):
    """What a node was."""

    way: Way
    path: Path


class Rewinder:
    """Of one run; all journals that were given up lie in one directory."""

    def __init__(
        self, stations: Mapping[NodeId, Station], root: Path, witness: Witness, clock: Clock
    ) -> None:
        self.bygones: list[Bygone] = []
        self._stations = stations
        self._root = root
        self._witness = witness
        self._clock = clock
        self._count = 0

    def place(self, node: NodeId) -> Path:
        """A new directory for what is kept of one of them."""
        self._count += 1
        place = self._root / f"{node}-{self._count}"
        place.mkdir(mode=0o700, parents=True)
        return place

    async def save(self, station: Station, way: Way) -> Saved:
        """A backup by command, or the files as they are at one moment. Raises FleetFailed."""
        place = self.place(station.node)
        if way is Way.BACKUP:
            saved = Saved(way, place / "node.backup")
            await station.process.command("backup", str(saved.path))
        else:
            saved = Saved(way, place / "home")
            await self.image(station, saved.path)
        return saved

    async def image(self, station: Station, target: Path) -> None:
        """Its files as a power cut would leave them now; the process stands still meanwhile."""
        stopped = station.process.pids
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.to_thread(copy_home, station.process.home, target)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)

    async def put_back(self, station: Station, saved: Saved) -> None:
        """Kill it and start it as it was then. Raises FleetFailed."""
        await station.down()
        home, place = station.process.home, saved.path.parent
        await free(home)
        known = await asyncio.to_thread(self._known, station.node)
        if saved.way is Way.BACKUP:
            await station.process.command("restore", str(saved.path), "--force")
            lost = await asyncio.to_thread(take_aside, home, place / "lost")
        else:
            lost = await asyncio.to_thread(keep_journal, home.root, place / "lost")
            await asyncio.to_thread(put_home, saved.path, home)
        base = await asyncio.to_thread(keep_journal, home.root, place / "base")
        self.gave_up(
            Bygone(
                node=station.node,
                way=saved.way,
                order=self.moment(),
                since_ms=self._clock.wall_ms(),
                base=base,
                lost=lost,
                known=known,
            )
        )
        await station.up()

    def gave_up(self, bygone: Bygone) -> None:
        """Note a history that nobody will go on with."""
        self.bygones.append(bygone)

    def moment(self) -> int:
        """Among what agents see."""
        return self._witness.mark()

    def end(self, *, keep: bool) -> None:
        """Let all of it go, unless somebody will want to look at it."""
        if not keep:
            shutil.rmtree(self._root, ignore_errors=True)

    def _known(self, node: NodeId) -> dict[NodeId, Known]:
        """What the others know of it at this moment."""
        others = {other: station for other, station in self._stations.items() if other != node}
        return {other: _known_by(station.process.home.journal, node) for other, station in others.items()}


async def free(home: Home) -> None:
    """Wait until nobody writes there any more: the process of a journal may outlive its gateway for a moment.

    Raises HomeLocked.
    """
    await asyncio.to_thread(lambda: HomeLock(home.lock).close())


def _known_by(journal: Path, node: NodeId) -> Known:
    reader = JournalReader.open(journal)
    try:
        rows = [row for row in reader.deliveries(DeliveryState, _ALL) if row.node == node]
        return Known(
            accepted=frozenset(row.event_id for row in rows if row.accepted_at_ms is not None),
            ended=frozenset(row.event_id for row in rows if _has_ended(row)),
            read=reader.cursor(node),
        )
    finally:
        reader.close()


def _has_ended(row: Delivery) -> bool:
    return row.processed_at_ms is not None or row.replied_at_ms is not None
