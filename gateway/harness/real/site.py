"""The mesh under test: gateways, the ways between them, their disks, and what the harness notes of them."""

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from gateway.client import GatewayClient
from gateway.clock import Clock
from gateway.config import HostWord
from gateway.fleet.errors import FleetFailed
from gateway.fleet.fleet import Fleet
from gateway.fleet.waiting import comes_true, until
from gateway.harness.real.cloning import Cloner, Company
from gateway.harness.real.disk import SmallDisk
from gateway.harness.real.faultclass import FaultClass
from gateway.harness.real.habit import Habit, agent_of
from gateway.harness.real.injection import Injection
from gateway.harness.real.limits import (
    ACCEPT_MS,
    ACK_TIMEOUT_MS,
    DELIVERIES_MAX,
    HEAL_WITHIN_S,
    LEASE_MS,
    PROCESS_MS,
    RETRY_ATTEMPTS,
    RETRY_CAP_MS,
    RETRY_FIRST_MS,
)
from gateway.harness.real.network import Network
from gateway.harness.real.rewinding import Rewinder
from gateway.harness.real.station import Station
from gateway.judging.evidence import at_rest
from gateway.judging.witness import Witness
from outbox.ids import NodeId
from outbox.reader import JournalReader

_SETTINGS: Mapping[str, object] = {
    "courier.lease_ms": LEASE_MS,
    "courier.max_deliveries": DELIVERIES_MAX,
    "sla.accept_ms": ACCEPT_MS,
    "sla.process_ms": PROCESS_MS,
    "retry.first_ms": RETRY_FIRST_MS,
    "retry.cap_ms": RETRY_CAP_MS,
    "retry.attempts": RETRY_ATTEMPTS,
    "retry.ack_timeout_ms": ACK_TIMEOUT_MS,
}

_BUGS = frozenset({"tick.failed", "input.failed"})
"""Log events with which a gateway says that it met a bug of its own and went on."""


class Site:
    """Built on a network for the nodes of a schedule; ``begin`` before anything else, ``end`` at the end."""

    def __init__(
        self,
        root: Path,
        environ: Mapping[str, str],
        nodes: Sequence[NodeId],
        *,
        network: Network,
        clock: Clock,
        tell: Callable[[str], None],
        witness: Witness,
        company: Company,
        engine_host: HostWord = "inline",
    ) -> None:
        self.nodes = tuple(nodes)
        self.network = network
        self.disks: dict[NodeId, SmallDisk] = {}
        settings = {
            node: {**_SETTINGS, "engine.host": engine_host, **network.settings(node)} for node in nodes
        }
        prefixes = {node: network.prefix(node) for node in nodes}
        self.fleet = Fleet(root, environ, settings, prefixes)
        aside = engine_host == "process"
        self.stations = {
            node: Station(process, clock, tell, witness.mark, aside=aside)
            for node, process in self.fleet.gateways.items()
        }
        self.rewinder = Rewinder(self.stations, root / "pasts", witness, clock)
        self.cloner = Cloner(self.rewinder, settings, company, tell, clock)
        self._root = root
        self._clock = clock
        self._codes: tuple[str, ...] = ()

    async def begin(self, schedule: Sequence[Injection], tell: Callable[[str], None]) -> None:
        """Small disks where they will be full, then the mesh with its agents. Raises FleetFailed."""
        for node in sorted({one.targets[0] for one in schedule if one.fault is FaultClass.DISKFULL}):
            disk = SmallDisk(self.fleet.gateways[node].home.root)
            disk.mount()
            self.disks[node] = disk
        self._codes = await self.fleet.begin(tell)
        agents = {agent_of(habit, node): node for node in self.nodes for habit in Habit}
        tell(f"{len(agents)} agents")
        await self.fleet.add_agents(agents)

    async def healed(self) -> None:
        """Let everything pass, and wait until all gateways are up and linked. Raises FleetFailed."""
        await self.network.heal()
        for node, station in self.stations.items():
            async with station.process.client() as client:
                await until(f"at {node}, all links are up", partial(self._linked, client), HEAL_WITHIN_S)

    async def _linked(self, client: GatewayClient) -> bool:
        rows = await client.nodes()
        return {row.node for row in rows} == set(self.nodes) and all(
            row.here or row.link == "up" for row in rows
        )

    async def rests(self) -> bool:
        """Whether nothing is on its way any more, by the journals."""
        return await asyncio.to_thread(self._rests)

    def _rests(self) -> bool:
        readers = [JournalReader.open(station.process.home.journal) for station in self.stations.values()]
        try:
            return at_rest(readers, ())
        finally:
            for reader in readers:
                reader.close()

    async def rooms_differ(self) -> str:
        """How two gateways show the mesh differently; empty when all show the same, within a while."""
        difference = ""

        async def alike() -> bool:
            nonlocal difference
            shown = {node: await self._shown(node) for node in self.nodes}
            first, *others = self.nodes
            difference = next(
                (f"{first} and {other} disagree" for other in others if shown[other] != shown[first]), ""
            )
            return not difference

        await comes_true(alike, HEAL_WITHIN_S)
        return difference

    async def _shown(self, node: NodeId) -> list[tuple[str, ...]]:
        async with self.stations[node].process.client() as client:
            agents = [("agent", row.name, str(row.node)) for row in await client.agents()]
            nodes = [("node", row.node) for row in await client.nodes()]
        return sorted([*agents, *nodes])

    async def readmitted(self) -> tuple[NodeId, ...]:
        """The nodes whose spent invite admits a stranger: none should."""
        return tuple(
            [
                node
                for node, code in zip(self.fleet.joiners, self._codes, strict=True)
                if await self._admits_again(node, code)
            ]
        )

    async def _admits_again(self, node: NodeId, code: str) -> bool:
        stranger = self._root / f".stranger-{node}"
        founder = self.fleet.gateways[self.fleet.founder]
        try:
            await founder.command("--home", str(stranger), *self.fleet.join_command(node), stdin=code)
        except FleetFailed:
            return False
        finally:
            shutil.rmtree(stranger, ignore_errors=True)
        return True

    def complaints(self) -> Iterator[tuple[NodeId, str]]:
        """What gateways said about bugs of their own, and copies of them."""
        for process in (*self.fleet.gateways.values(), *self.cloner.clones):
            for log in sorted(process.home.log.parent.glob(f"{process.home.log.name}*")):
                for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
                    if _event(line) in _BUGS:
                        yield process.node, line[-600:]

    async def stop(self) -> None:
        """Stop all gateways, stopped ones included."""
        await self.network.heal()
        await self.fleet.stop()
        await self.network.close()

    def end(self, *, keep: bool) -> None:
        """Gather the logs; let the homes go, with their keys, unless somebody will want to look at them."""
        processes = {str(node): process for node, process in self.fleet.gateways.items()}
        for number, clone in enumerate(self.cloner.clones, 1):
            processes[f"{clone.node}.copy{number}"] = clone
        for name, process in processes.items():
            for log in process.home.log.parent.glob("*"):
                shutil.copy(log, self._root / "logs" / f"{name}.{log.name}")
        self.rewinder.end(keep=keep)
        for disk in self.disks.values():
            disk.release(keep=keep)
        if not keep:
            for process in self.fleet.gateways.values():
                shutil.rmtree(process.home.root, ignore_errors=True)


def _event(line: str) -> str:
    try:
        return str(json.loads(line).get("event", ""))
    except ValueError:
        return ""
