"""Asks the engine from time to time to forget what may go."""

import asyncio

from gateway.engine.effects import Pruned
from gateway.engine.inputs import Prune
from gateway.errors import Busy, Denied
from gateway.limits import RETAIN_AGAIN_S, RETAIN_EVERY_S
from gateway.runtime import Runtime


async def retain(runtime: Runtime) -> None:
    """Until cancelled."""
    more = False
    while True:
        await asyncio.sleep(RETAIN_AGAIN_S if more else RETAIN_EVERY_S)
        more = await _look(runtime)


async def _look(runtime: Runtime) -> bool:
    """Whether more is to be done at once; a gateway that is busy, or has a full disk, does it later."""
    try:
        answer = await runtime.ask(Prune(runtime.req(), force=False))
    except (Busy, Denied):
        return False
    return isinstance(answer, Pruned) and answer.more
