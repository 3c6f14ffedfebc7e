"""Asks the engine from time to time to forget what may go, and sweeps what was left lying."""

import asyncio

import structlog

from gateway.blobs.keeper import BlobKeeper
from gateway.engine.effects import Pruned
from gateway.engine.inputs import Prune
from gateway.errors import Busy, Denied
from gateway.limits import RETAIN_AGAIN_S, RETAIN_EVERY_S
from gateway.runtime import Runtime
from outbox.errors import StorageFailed, StorageFull

log = structlog.get_logger(__name__)


async def retain(runtime: Runtime, blobs: BlobKeeper) -> None:
    """Until cancelled."""
    await _sweep(blobs)
    more = False
    while True:
        await asyncio.sleep(RETAIN_AGAIN_S if more else RETAIN_EVERY_S)
        more = await _look(runtime)
        if not more:
            await _sweep(blobs)


async def _sweep(blobs: BlobKeeper) -> None:
    """Files that no row knows; a disk that cannot be looked at now is looked at again."""
    try:
        await blobs.sweep()
    except (StorageFull, StorageFailed) as error:
        log.warning("blobs.not_swept", why=str(error))


async def _look(runtime: Runtime) -> bool:
    """Whether more is to be done at once; a gateway that is busy, or has a full disk, does it later.

    On that it would be refused, and with it what else the tick was asked.
    """
    if runtime.storage_full:
        return False
    try:
        answer = await runtime.ask(Prune(runtime.req(), force=False))
    except (Busy, Denied):
        return False
    return isinstance(answer, Pruned) and answer.more
