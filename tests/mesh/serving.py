"""A whole gateway in the test's own process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from gateway import config
from gateway.app import Gateway
from gateway.clock import Clock
from gateway.telemetry import start_logging
from tests.mesh.processes import Node

READY_WITHIN_S = 60


@contextlib.asynccontextmanager
async def serving(node: Node, clock: Clock) -> AsyncIterator[None]:
    """It serves what is in the node's home, and has let go of it afterwards."""
    stop_logging = start_logging(node.home.log, "debug")
    gateway = Gateway(node.home, config.load(node.home.config, {}, {}).config, clock)
    ready = asyncio.Event()
    running = asyncio.create_task(gateway.run(lambda _: ready.set()))
    async with asyncio.timeout(READY_WITHIN_S):
        await ready.wait()
    try:
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await gateway.close()
        stop_logging()
