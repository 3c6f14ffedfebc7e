"""Waiting for what only another process can make true: look, pause, look again, within a bound."""

import asyncio
from collections.abc import Awaitable, Callable

from gateway.errors import TimedOut, Unreachable
from gateway.fleet.errors import FleetFailed
from gateway.fleet.limits import LOOK_EVERY_S

Condition = Callable[[], Awaitable[bool]]


async def until(what: str, condition: Condition, within_s: float) -> None:
    """Return once the condition holds; a gateway that does not answer yet counts as "not yet".

    Raises FleetFailed when it did not come true in time, and whatever else the condition raises.
    """
    if not await comes_true(condition, within_s):
        raise FleetFailed(f"waited {within_s:.0f} s in vain: {what}")


async def comes_true(condition: Condition, within_s: float) -> bool:
    """The same for a condition that need not come true; says whether it did."""
    try:
        async with asyncio.timeout(within_s):
            while not await _holds(condition):  # noqa: ASYNC110 - nobody in this process could set an event
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        return False
    return True


async def _holds(condition: Condition) -> bool:
    try:
        return await condition()
    except (Unreachable, TimedOut):
        return False
