"""Fetches the blobs that are named here and are not here, over the links that are up."""

import asyncio

import structlog

from gateway.blobs.errors import BlobBusy, BlobWrong
from gateway.blobs.keeper import BlobKeeper, Incoming
from gateway.clock import Clock
from gateway.engine.bloblife import BlobLost
from gateway.engine.inputs import RelayCaught
from gateway.errors import Busy, Denied
from gateway.links.fetchplan import Ask, FetchPlan
from gateway.links.limits import (
    BLOB_STALLED_S,
    BLOBS_LOOK_EVERY_S,
    BLOBS_MISSING_MAX,
    REFUSED_BY_DISK_MS,
)
from gateway.links.link import Link
from gateway.links.registry import Registry
from gateway.runtime import Runtime
from gateway.wire.frames import BlobNone, BlobRefusal
from outbox.errors import StorageFailed, StorageFull

log = structlog.get_logger(__name__)


class Fetcher:
    """One for all links. What came before a link broke is gone on with over the next one."""

    def __init__(
        self, keeper: BlobKeeper, runtime: Runtime, registry: Registry, clock: Clock, mirrored_bytes_max: int
    ) -> None:
        self._keeper = keeper
        self._runtime = runtime
        self._registry = registry
        self._clock = clock
        self._mirrored_bytes_max = mirrored_bytes_max
        self._plan = FetchPlan()
        self._unsure = True
        """What is missing has to be asked for anew."""
        self._stirred = asyncio.Event()
        registry.on_change = self.stir

    def missing(self) -> None:
        """An event that was read names what is not here."""
        self._unsure = True
        self._stirred.set()

    def stir(self) -> None:
        """A link is up, is gone, or has more to offer."""
        if self._plan:
            self._stirred.set()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                for ask in self._look():
                    tasks.create_task(self._fetch(ask))
                try:
                    async with asyncio.timeout(BLOBS_LOOK_EVERY_S if self._plan else None):
                        await self._stirred.wait()
                except TimeoutError:
                    self._unsure = True  # what expired meanwhile is not fetched any more
                self._stirred.clear()

    def _look(self) -> list[Ask]:
        if self._unsure:
            self._unsure = False
            self._plan.misses(self._keeper.index.missing_blobs(BLOBS_MISSING_MAX))
        if not self._plan:
            return []
        carriers = self._registry.carriers()
        for lost in self._plan.lost(carriers):
            log.warning("blob.lost", sha256=lost.sha256, why=lost.why)
            self._runtime.tell_now(BlobLost(lost.sha256, lost.why))
            self._plan.done(lost.sha256)
        room = self._mirrored_bytes_max - self._keeper.index.blob_bytes()
        return self._plan.decide(carriers, self._clock.mono_ms(), mirror_room=room)

    async def _fetch(self, ask: Ask) -> None:
        blob, now_ms = ask.blob, self._clock.mono_ms
        try:
            await self._take(ask)
        except (StorageFull, StorageFailed, BlobBusy, Busy, Denied) as error:
            log.warning("blob.not_kept", sha256=blob.sha256, code=error.code, why=str(error))
            self._plan.pause(now_ms() + REFUSED_BY_DISK_MS)
            self._plan.broke_off(blob.sha256)
        finally:
            self._unsure = True
            self._stirred.set()

    async def _take(self, ask: Ask) -> None:
        """Bring one blob in, as far as it comes. Raises what the disk or a tick refuses with."""
        blob, link = ask.blob, self._registry.numbered(ask.link)
        if link is None or await self._keeper.have(blob.sha256) is not None:
            self._plan.broke_off(blob.sha256)
            return
        async with self._keeper.coming(blob.sha256, blob.bytes) as incoming:
            alone = incoming.offset == 0
            link.blobs.begin(blob.sha256)
            try:
                if await self._pour(ask, link, incoming):
                    await incoming.keep()
                    log.info("blob.fetched", sha256=blob.sha256, peer=ask.peer, bytes=blob.bytes)
                    self._plan.done(blob.sha256)
            except BlobWrong as error:
                self._wrong(ask, str(error), alone=alone)
            finally:
                link.blobs.end()

    async def _pour(self, ask: Ask, link: Link, incoming: Incoming) -> bool:
        """Whether all of it came."""
        blob, asked = ask.blob, incoming.offset
        while not incoming.whole:
            asked = link.blobs.ask(blob.sha256, asked, blob.bytes)
            try:
                async with asyncio.timeout(BLOB_STALLED_S):
                    answer = await link.blobs.answer()
            except TimeoutError:
                self._plan.refused(blob.sha256, ask.peer, "silent", self._clock.mono_ms())
                return False
            if answer is None:
                self._plan.broke_off(blob.sha256)
                return False
            if isinstance(answer, BlobNone):
                self._plan.refused(blob.sha256, ask.peer, answer.code, self._clock.mono_ms())
                return False
            if answer.total != blob.bytes:  # its event is wrong, or this peer: one that is right is found
                self._plan.refused(blob.sha256, ask.peer, BlobRefusal.SHORT, self._clock.mono_ms())
                return False
            await incoming.write(answer.data)
        return True

    def _wrong(self, ask: Ask, why: str, *, alone: bool) -> None:
        """Bytes of several peers, or of an earlier run, accuse nobody: it is fetched anew."""
        sha256, now_ms = ask.blob.sha256, self._clock.mono_ms()
        if not alone:
            self._plan.broke_off(sha256)
            return
        log.warning("blob.wrong", sha256=sha256, peer=ask.peer, why=why)
        self._plan.lied(sha256, ask.peer, now_ms)
        if ask.peer != ask.blob.source:
            self._runtime.tell_now(RelayCaught(ask.peer, ask.blob.source, BlobWrong.code, why))
