"""The process of the journal: it serves, it dies with its gateway, the home is locked until it is gone."""

import asyncio
import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.config import Config
from gateway.engine.effects import AgentChanged
from gateway.engine.inputs import AddAgent, Now
from gateway.errors import EngineLost
from gateway.founding import found
from gateway.home import Home
from gateway.hosting.host import EngineHost
from gateway.writing import aside
from gateway.writing.aside import WriterAside
from gateway.writing.opening import Boot, Opening
from gateway.writing.writer import Writer
from outbox.database import Database
from outbox.errors import HomeLocked, MeshError
from outbox.ids import AgentId, NodeId
from outbox.lock import HomeLock
from outbox.reader import JournalReader
from stateroom.view import View

WITHIN_S = 60.0
CLOCK = Clock()

GATEWAY = """
import signal, sys
from pathlib import Path
from gateway.clock import Clock
from gateway.config import Config
from gateway.home import Home
from gateway.writing.aside import WriterAside
from gateway.writing.opening import Boot, Opening
from outbox.lock import HomeLock
home = Home(Path(sys.argv[1]), Path(sys.argv[2]))
writer = WriterAside(Opening(home, Config(), Boot.made(Clock())), HomeLock(home.lock))
print(writer.pid, flush=True)
signal.pause()
"""


@pytest.fixture
def home() -> Iterator[Home]:
    with tempfile.TemporaryDirectory(prefix="gw-") as place:
        made = Home(Path(place) / "home", Path(place) / "run")
        found(made, NodeId("vps"), CLOCK, {})
        yield made


def opening(home: Home) -> Opening:
    return Opening(home, Config(), Boot.made(CLOCK))


def now() -> Now:
    return Now(CLOCK.wall_ms(), CLOCK.mono_ms())


def view() -> View:
    return View(version=1, mesh="mesh", nodes={}, agents={}, cursors={})


async def add(host: EngineHost, name: str) -> None:
    effects = await host.apply([AddAgent(1, AgentId(name), bytes(32))], now())
    assert any(isinstance(effect, AgentChanged) for effect in effects)


def agents(home: Home) -> list[str]:
    reader = JournalReader.open(home.journal)
    try:
        return [row.name for row in reader.agents()]
    finally:
        reader.close()


def is_gone(pid: int) -> bool:
    """It runs no more: nobody may be there to collect what is left of it."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


async def test_it_serves_until_it_is_closed(home: Home) -> None:
    with HomeLock(home.lock) as lock:
        writer = WriterAside(opening(home), lock)
        host = await writer.host(view(), now())
        await add(host, "ann")
        assert agents(home) == ["ann"]
        await writer.close()
        assert is_gone(writer.pid)


async def test_one_that_made_no_engine_is_closed_too(home: Home) -> None:
    with HomeLock(home.lock) as lock:
        writer = WriterAside(opening(home), lock)
        await writer.close()
        assert is_gone(writer.pid)


async def test_signals_of_a_terminal_are_not_for_it(home: Home) -> None:
    with HomeLock(home.lock) as lock:
        writer = WriterAside(opening(home), lock)
        host = await writer.host(view(), now())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(writer.pid, number)
        await add(host, "ann")
        await writer.close()


async def test_a_kill_is_noticed_at_once_and_nothing_is_lost(home: Home) -> None:
    with HomeLock(home.lock) as lock:
        writer = WriterAside(opening(home), lock)
        host = await writer.host(view(), now())
        await add(host, "ann")
        os.kill(writer.pid, signal.SIGKILL)
        async with asyncio.timeout(WITHIN_S):
            with pytest.raises(EngineLost) as caught:
                await host.watch()
        assert "start the gateway again" in caught.value.hint
        with pytest.raises(EngineLost):
            await add(host, "bob")
        await writer.close()
        again = WriterAside(opening(home), lock)
        await add(await again.host(view(), now()), "bob")
        assert agents(home) == ["ann", "bob"]
        await again.close()


async def test_who_waits_for_an_answer_hears_of_a_kill(home: Home) -> None:
    with HomeLock(home.lock) as lock:
        writer = WriterAside(opening(home), lock)
        host = await writer.host(view(), now())
        os.kill(writer.pid, signal.SIGSTOP)
        asking = asyncio.ensure_future(add(host, "ann"))
        await asyncio.sleep(0)
        os.kill(writer.pid, signal.SIGKILL)
        async with asyncio.timeout(WITHIN_S):
            with pytest.raises(EngineLost):
                await asking
        await writer.close()


def test_it_dies_with_its_gateway_and_the_home_is_locked_until_then(home: Home) -> None:
    """Stopped, it would not see that its gateway is gone; the kernel kills it all the same."""
    if sys.platform != "linux":
        pytest.skip("only Linux kills the children of the dead")
    with subprocess.Popen(
        [sys.executable, "-c", GATEWAY, str(home.root), str(home.runtime)], stdout=subprocess.PIPE, text=True
    ) as gateway:
        assert gateway.stdout is not None
        pid = int(gateway.stdout.readline())
        with pytest.raises(HomeLocked, match=f"process {gateway.pid}"):
            HomeLock(home.lock)
        os.kill(pid, signal.SIGSTOP)
        gateway.kill()
        gateway.wait(WITHIN_S)
    with HomeLock(home.lock):
        assert is_gone(pid)


async def test_the_end_of_its_socket_is_its_end(home: Home) -> None:
    """However its gateway ended, and on every system; the home is free only then."""
    lock = HomeLock(home.lock)
    writer = WriterAside(opening(home), lock)
    lock.close()
    with pytest.raises(HomeLocked):
        HomeLock(home.lock)
    await writer.close()
    HomeLock(home.lock).close()


def damage_file(home: Home) -> None:
    home.journal.write_bytes(b"no database at all" * 100)


def damage_version(home: Home) -> None:
    database = Database.open(home.journal, wal_bytes=0)
    with database.transaction():
        database.execute("UPDATE versions SET version = 99")
    database.close()


@pytest.mark.parametrize("damage", [damage_file, damage_version])
def test_what_cannot_be_opened_is_told_as_if_it_were_here(home: Home, damage: Callable[[Home], None]) -> None:
    damage(home)
    with pytest.raises(MeshError) as here:
        Writer(opening(home), CLOCK)
    with HomeLock(home.lock) as lock, pytest.raises(type(here.value)) as there:
        WriterAside(opening(home), lock)
    assert (str(there.value), there.value.hint) == (str(here.value), here.value.hint)


def test_secrets_of_a_start_are_not_shown(home: Home) -> None:
    asked = opening(home)
    assert repr(asked.boot.ticket_seed) not in repr(asked)
    assert Opening.told(asked.tell()) == asked


def test_a_process_that_cannot_be_started_is_said_so(home: Home) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with HomeLock(home.lock) as lock:
        asked = opening(home)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lock.fileno() + 1, hard))
        try:
            with pytest.raises(EngineLost, match="cannot be started: Too many open files"):
                WriterAside(asked, lock)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_one_that_does_not_open_the_journal_is_not_waited_for_for_ever(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands still, as in a disk that does not answer, and does not notice that its socket is closed."""
    started: list[int] = []

    def start_and_stop(theirs: socket.socket, lock: HomeLock) -> subprocess.Popen[bytes]:
        process = start(theirs, lock)
        process.send_signal(signal.SIGSTOP)
        started.append(process.pid)
        return process

    start = aside._start
    monkeypatch.setattr(aside, "_start", start_and_stop)
    monkeypatch.setattr(aside, "WRITER_OPENS_WITHIN_S", 0.1)
    monkeypatch.setattr(aside, "WRITER_ENDS_WITHIN_S", 0.1)
    with HomeLock(home.lock) as lock, pytest.raises(EngineLost, match="has not opened it") as caught:
        WriterAside(opening(home), lock)
    assert "disk" in caught.value.hint
    assert is_gone(started[0])
    HomeLock(home.lock).close()
