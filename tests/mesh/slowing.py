"""A disk that is slow to confirm: ``strace`` holds every fsync of a running process back."""

import asyncio
import contextlib
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.fleet.process import children
from tests.mesh.processes import Node, until

SYNCS = "fsync,fdatasync,sync_file_range"
ATTACHED_WITHIN_S = 60.0


@asynccontextmanager
async def slow_disk(node: Node, delay_ms: int, notes: Path) -> AsyncIterator[None]:
    """While in here, each sync of the node's process begins so much later than it was asked for."""
    strace = shutil.which("strace")
    if strace is None or sys.platform != "linux":
        pytest.skip("strace is not installed")
    assert node.process is not None
    inject = f"inject={SYNCS}:delay_enter={delay_ms * 1000}"
    pids = [node.process.pid, *children(node.process.pid)]
    attached = [part for pid in pids for part in ("-p", str(pid))]
    command = [strace, "-f", *attached, "-e", f"trace={SYNCS}", "-e", inject]
    with notes.open("wb") as output:
        tracer = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        await _attached(tracer, notes, len(pids))
        yield
    finally:
        tracer.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            tracer.wait(10)
        tracer.kill()
        tracer.wait()


async def _attached(tracer: subprocess.Popen[bytes], notes: Path, processes: int) -> None:
    async def look() -> bool:
        text = notes.read_text()
        if tracer.poll() is not None:
            pytest.skip(f"strace cannot attach here: {text.strip()[:200]}")
        return text.count("attached") >= processes

    await until(look, ATTACHED_WITHIN_S, "strace is attached")
    await asyncio.sleep(0)
