"""Every system call that a gateway needs fails once: the first, the second, … until one is never reached.

The gateway may go on or end, at its start or in the middle of a conversation; ended, it is started again.
Afterwards the journals are held against what the agents were told: nothing that was answered is lost, and
nothing is done twice. ``strace`` makes the calls fail, from the first instruction of the process on.
"""

import asyncio
import contextlib
import itertools
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.errors import Denied, TimedOut, Unreachable
from gateway.judging.witness import Witness
from tests.mesh.acting import at_work, rest, send
from tests.mesh.conftest import MakeNode
from tests.mesh.judging import faults
from tests.mesh.processes import DEATH_WITHIN_S, ENGINE_HOST, LOOK_EVERY_S, Node

MESSAGES = 4
"""Of each side and run."""

INJECTED = "(INJECTED)"
TALK_WITHIN_S = 60.0


@dataclass(frozen=True)
class Failure:
    """Calls that fail with an error; ``files`` of the home narrow it to what touches those."""

    calls: str
    error: str
    files: tuple[str, ...] = ()
    nth_max: int = 3_000

    def __str__(self) -> str:
        return f"{self.calls.partition(',')[0]}-{self.error}"

    def tracer(self, nth: int, home: Path, notes: Path) -> list[str]:
        """The command that runs a gateway in which the Nth of these calls fails."""
        paths = [part for name in self.files for part in ("-P", str(home / name))]
        inject = f"inject={self.calls}:error={self.error}:when={nth}"
        return ["strace", "-D", "-f", "-o", str(notes), *paths, "-e", f"trace={self.calls}", "-e", inject]


DATABASES = tuple(f"{name}.db{end}" for name in ("journal", "room") for end in ("", "-wal", "-shm"))
FILES = (*DATABASES, "gateway.toml", "issuer.json", "lock", "keys", "keys/node.key", "log/gateway.jsonl")

SAMPLE = (
    Failure("fsync,fdatasync", "EIO"),
    Failure("pwrite64", "ENOSPC"),
)
FAILURES = (
    *SAMPLE,
    Failure("pwrite64", "EIO"),
    Failure("pread64", "EIO", DATABASES),
    Failure("openat", "EIO", FILES),
    Failure("openat", "EMFILE", FILES),
    Failure("ftruncate", "EIO"),
    Failure("unlink,unlinkat", "EIO"),
    Failure("write,writev", "ENOSPC", ("log/gateway.jsonl",)),
    Failure("write,writev,sendto,sendmsg", "ECONNRESET"),
    Failure("read,readv,recvfrom,recvmsg", "ECONNRESET"),
    Failure("accept4,accept", "ECONNABORTED"),
    Failure("accept4,accept", "EMFILE"),
    Failure("connect", "ECONNREFUSED"),
    Failure("socket", "EMFILE"),
    Failure("bind", "EADDRINUSE"),
    Failure("listen", "EADDRINUSE"),
)


def numbers() -> Iterator[int]:
    """1, 2, 3, 5, 8, 13 …: all of the first ones, then ever fewer."""
    one, other = 1, 2
    while True:
        yield one
        one, other = other, one + other


def traces() -> bool:
    return sys.platform == "linux" and shutil.which("strace") is not None


async def converse(pair: tuple[Node, Node], witness: Witness, name: str) -> None:
    """Both sides say a little; returns when all of it was answered."""

    async def say(node: Node, agent: str, to: str) -> None:
        async with node.client() as gateway:
            for number in range(MESSAGES):
                await send(node, gateway.agent(agent), to, f"{name}-{agent}-{number}", witness)

    async with asyncio.timeout(TALK_WITHIN_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(say(pair[0], "ada", "bob"))
        tasks.create_task(say(pair[1], "bob", "ada"))


async def revive(node: Node) -> None:
    """Start the node again, without a tracer, as soon as it has ended."""
    while node.running:
        await asyncio.sleep(LOOK_EVERY_S)
    node.kill()
    node.start()


async def attempt(pair: tuple[Node, Node], witness: Witness, tracer: list[str], name: str) -> None:
    """One conversation with a gateway in which one call fails, then a clean start; nothing may be open."""
    victim = pair[1]
    victim.kill()
    victim.start(tracer=tracer)
    sent = witness.promises
    async with asyncio.TaskGroup() as tasks, at_work(witness, (pair[0], "ada"), (victim, "bob")):
        reviving = tasks.create_task(revive(victim))
        await converse(pair, witness, name)
        assert witness.promises >= sent + 2 * MESSAGES
        reviving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reviving
        victim.kill()
        victim.start()
        await victim.ready()
        await rest(pair, 1)


async def survive(pair: tuple[Node, Node], failure: Failure, place: Path, nth_max: int) -> int:
    """Let the Nth call fail for one N after the other; how many of them were reached."""
    reached = 0
    witness = Witness()
    for nth in numbers():
        if nth > nth_max:
            break
        notes = place / f"strace-{nth}.txt"
        await attempt(pair, witness, failure.tracer(nth, pair[1].home.root, notes), f"nth-{nth}")
        assert faults(pair, witness.account()) == [], f"{failure} {nth}"
        if INJECTED not in notes.read_text():
            break
        reached += 1
    return reached


@pytest.mark.parametrize(
    "engine_host", [ENGINE_HOST, pytest.param("process", marks=pytest.mark.long, id="aside")]
)
@pytest.mark.parametrize("failure", SAMPLE, ids=str)
async def test_the_first_ones(pair: tuple[Node, Node], mesh_dir: Path, failure: Failure) -> None:
    if not traces():
        pytest.skip("strace is not installed")
    assert await survive(pair, failure, mesh_dir, 2) == 2


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("engine_host", ["inline", "process"])
@pytest.mark.parametrize("failure", FAILURES, ids=str)
async def test_each_one(pair: tuple[Node, Node], mesh_dir: Path, failure: Failure) -> None:
    if not traces():
        pytest.skip("strace is not installed")
    assert await survive(pair, failure, mesh_dir, failure.nth_max) >= 1


@pytest.mark.parametrize(
    ("failure", "nth", "says", "engine_host"),
    [
        (Failure("listen", "EADDRINUSE"), 2, "does not let this gateway listen", ENGINE_HOST),
        (Failure("fsync,fdatasync", "EIO", ("journal.db-wal",)), 12, "restart before trusting", "inline"),
        pytest.param(
            Failure("fsync,fdatasync", "EIO", ("journal.db-wal",)),
            12,
            "restart before trusting",
            "process",
            marks=pytest.mark.long,
        ),
    ],
    ids=["a listener", "the disk", "the disk, aside"],
)
async def test_what_cannot_go_on_ends_and_says_why(
    make_node: MakeNode, mesh_dir: Path, failure: Failure, nth: int, *, says: str, engine_host: str
) -> None:
    """uvloop drops a socket that cannot listen without a word: a gateway would run and answer nobody."""
    if not traces():
        pytest.skip("strace is not installed")
    node = make_node("vps", **{"engine.host": engine_host})
    node.found()
    node.start(tracer=failure.tracer(nth, node.home.root, mesh_dir / "strace.txt"))
    async with asyncio.timeout(DEATH_WITHIN_S):
        for number in itertools.count():
            if not node.running:
                break
            with contextlib.suppress(Unreachable, TimedOut, Denied):
                await node.add_agents(f"agent-{number}")
            await asyncio.sleep(LOOK_EVERY_S)
    assert node.process is not None
    assert node.process.returncode == 1
    what, _, to_do = node.tail().splitlines()[-3:]
    assert what.startswith("gateway: ")
    assert says in what + to_do
    assert "gateway.failed" in node.log()
