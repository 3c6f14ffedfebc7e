"""``strace`` at a running gateway: its system calls, and those of the process of its journal, come late or
fail.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from gateway.fleet.errors import FleetFailed
from gateway.harness.real.limits import ATTACHED_WITHIN_S

SYNCS = "fsync,fdatasync,sync_file_range"


@asynccontextmanager
async def tampered(pids: Sequence[int], inject: str) -> AsyncIterator[None]:
    """While in here, ``strace -e inject=…`` is at work. Raises FleetFailed when it cannot attach."""
    calls = inject.partition(":")[0]
    tracer = await asyncio.create_subprocess_exec(
        *("strace", "-f", *(part for pid in pids for part in ("-p", str(pid)))),
        *("-e", f"trace={calls}", "-e", f"inject={inject}"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert tracer.stderr is not None
    try:
        await _attached(tracer.stderr)
        async with asyncio.TaskGroup() as tasks:
            draining = tasks.create_task(_drain(tracer.stderr))
            yield
            draining.cancel()
    finally:
        await _end(tracer)


async def _attached(lines: asyncio.StreamReader) -> None:
    try:
        async with asyncio.timeout(ATTACHED_WITHIN_S):
            line = await lines.readline()
            if b"attached" not in line:
                raise FleetFailed("strace cannot attach", hint=line.decode(errors="replace").strip()[:200])
    except TimeoutError:
        raise FleetFailed(f"strace did not attach in {ATTACHED_WITHIN_S:.0f} s") from None


async def _drain(lines: asyncio.StreamReader) -> None:
    while await lines.read(65536):
        pass


async def _end(tracer: asyncio.subprocess.Process) -> None:
    """Let go of the process: strace detaches on SIGTERM."""
    with contextlib.suppress(ProcessLookupError):
        tracer.terminate()
    try:
        async with asyncio.timeout(ATTACHED_WITHIN_S):
            await tracer.wait()
    except TimeoutError:
        tracer.kill()
        await tracer.wait()
