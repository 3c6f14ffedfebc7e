"""Waiting for what is on its way inside this process.

A turn of the loop takes some microseconds, a message or a tick of its own a hundred times as long.
"""

import asyncio
from collections.abc import Sized

from gateway.limits import GATHER_QUIET_TURNS, GATHER_TURNS_MAX


async def gathered(waiting: Sized, enough: int) -> None:
    """Until nothing was added for some turns of the loop, there is enough, or it has taken too many turns."""
    quiet_turns = 0
    for _ in range(GATHER_TURNS_MAX):
        before = len(waiting)
        await asyncio.sleep(0)
        quiet_turns = quiet_turns + 1 if len(waiting) == before else 0
        if quiet_turns == GATHER_QUIET_TURNS or len(waiting) >= enough:
            return
