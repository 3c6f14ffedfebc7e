"""A journal that is written in another process: each request and answer goes as bytes and takes a while.

The process of the journal dies with its gateway. What is on its way then was committed, or was not.
"""

import asyncio

from gateway.harness.sim.dice import Dice
from gateway.hosting.serving import Serving

_TRIPS_US = (0, 50, 1_000, 20_000, 300_000)


class SimLine:
    """Implements ``gateway.hosting.piped.Line``."""

    def __init__(self, serving: Serving, dice: Dice) -> None:
        self._serving = serving
        self._dice = dice
        self._busy_us = 0

    def busy(self, us: int) -> None:
        """The disk takes so long: only the answer waits for it."""
        self._busy_us += us

    async def exchange(self, text: bytes) -> bytes:
        """There, on disk, and back."""
        await self._trip(0)
        reply = self._serving.answer(text)
        busy_us, self._busy_us = self._busy_us, 0
        await self._trip(busy_us)
        return reply

    async def watch(self) -> None:
        """Until cancelled."""
        await asyncio.Event().wait()

    async def _trip(self, more_us: int) -> None:
        await asyncio.sleep((self._dice.among(_TRIPS_US) + more_us) / 1_000_000)
