"""One loop, one writer: inputs pile up while a commit is on its way to disk, the next tick takes them all.

So one fsync serves a batch, the batch grows with load, and at low load the latency is one fsync. Nothing that
depends on a commit leaves before it.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

import structlog

from gateway.clock import Clock
from gateway.copies import Copies
from gateway.crashpoint import CrashPoint, crashpoint
from gateway.engine.bloblife import BlobLost, BlobsFit, BlobsFull
from gateway.engine.effects import (
    Answer,
    Effect,
    Refused,
    StreamBroken,
)
from gateway.engine.inputs import FloorRead, Input, Now, PageRead, RelayCaught, Request, ViewChanged
from gateway.engine.rest import Rest
from gateway.engine.stalls import StreamFlows, StreamStalled
from gateway.errors import Denied
from gateway.feed import Feed
from gateway.hosting.host import EngineFailed, EngineHost
from gateway.intake import Intake
from gateway.limits import GATHER_WITHIN_MS, STORAGE_PAUSE_S
from gateway.performing import Outlets, perform
from outbox.chain import Head
from outbox.database import NO_ROOM
from outbox.errors import StorageFull
from outbox.ids import NodeId
from outbox.records import Copy
from stateroom.view import View

log = structlog.get_logger(__name__)

_SAID_ONCE = RelayCaught | StreamStalled | StreamFlows | BlobLost | BlobsFull | BlobsFit
"""What links and files have noticed: nobody says it again, so it waits until the disk has room."""

OnAnswer = Callable[[Answer], None]
"""Is called once, after the commit that the answer speaks of; it must not raise."""


class Journal(Protocol):
    """What is read of it, once, at the start."""

    def shown(self) -> Head:
        """How far the own outbox may be shown."""
        ...

    def copies(self) -> list[Copy]:
        """Of other outboxes."""
        ...


class Runtime:
    """Feeds one engine and performs its effects. Lives on one event loop."""

    def __init__(self, host: EngineHost, journal: Journal, view: View, clock: Clock) -> None:
        """``host`` has built its engine for this view."""
        self._host = host
        self._clock = clock
        self._intake = Intake()
        self._waiting: dict[int, OnAnswer] = {}
        self._later: dict[Input, None] = {}
        """What nobody says again, in the order in which it was said last, until there is room for it."""
        self._last_req = 0
        self._ticked_ms = clock.mono_ms()
        self.view = view
        self.storage_full = host.rest.read_only
        """Nothing can be written; what needs no room is done all the same."""
        self.outlets: Outlets | None = None
        self.feed = Feed(journal.shown(), is_open=False)
        self.copies = Copies(journal.copies())

    # --- asking

    def req(self) -> int:
        """A number for the next request."""
        self._last_req += 1
        return self._last_req

    def post(self, request: Request, on_answer: OnAnswer) -> None:
        """Put a request into the next tick; the answers of one caller's requests come in their order.

        Raises Busy when too much waits. The answer may be Refused: ``check`` says so.
        """
        self._intake.need_room()
        self._waiting[request.req] = on_answer
        self._intake.put(request)

    async def ask(self, request: Request) -> Answer:
        """Put a request into the next tick and wait until its answer is on disk.

        Raises Denied with the code of the refusal; Busy when too much waits.
        """
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.post(request, partial(_resolve, future))
        return check(await future)

    async def ask_all(self, requests: Sequence[Request]) -> list[Answer]:
        """Put several requests into the next ticks and wait for all their answers, refusals among them.

        Raises Busy when there is no room for all of them: then none was put.
        """
        self._intake.need_room(len(requests))
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Answer]] = [loop.create_future() for _ in requests]
        for request, future in zip(requests, futures, strict=True):
            self.post(request, partial(_resolve, future))
        return [await future for future in futures]

    async def room_of(self, peer: NodeId) -> None:
        """Wait while enough of what a peer has brought waits, so that its link stops reading.

        Who has waited looks again whether the input is still wanted: what it follows may have been refused.
        """
        await self._intake.room_of(peer)

    async def tell(self, item: Input) -> None:
        """Put an input of this machine into the next tick; waits while the queue is full."""
        await self._intake.room()
        self._intake.put(item)

    def tell_now(self, item: Input) -> None:
        """The same for inputs of the process itself, which never wait (a socket closed, the view changed)."""
        self._intake.put(item)

    @property
    def rest(self) -> Rest:
        """What the engine said of itself after its last tick."""
        return self._host.rest

    def wall_ms(self) -> int:
        """The time by which the engine judges: ahead of the machine's clock after that was set back."""
        return self.rest.wall_ms(self._now())

    def see(self, view: View) -> None:
        """The state room changed."""
        self.view = view
        self._intake.put(ViewChanged(view))

    # --- the loop

    async def run(self) -> None:
        """Tick for ever. Raises StorageFailed when the disk can no longer be trusted, and EngineLost."""
        while True:
            await self._until_due()
            if self._clock.mono_ms() - self._ticked_ms < GATHER_WITHIN_MS:
                await self._intake.gather()
            if not await self._tick(self._take()):
                await asyncio.sleep(STORAGE_PAUSE_S)
            self._ticked_ms = self._clock.mono_ms()

    async def _until_due(self) -> None:
        wake_ms = self.rest.wake_ms
        await self._intake.due(
            None if wake_ms is None else max(0.0, (wake_ms - self._clock.mono_ms()) / 1000)
        )

    def _take(self) -> list[Input]:
        """On a full disk nothing that needs room stands beside what may need none: both would be refused."""
        if not self.storage_full:
            return self._intake.take()
        batch = self._intake.take(apart=True)
        self._keep_for_later(batch)
        return [item for item in batch if not isinstance(item, _SAID_ONCE)]

    def _keep_for_later(self, batch: Iterable[Input]) -> None:
        for item in batch:
            if isinstance(item, _SAID_ONCE):
                self._later.pop(item, None)
                self._later[item] = None

    async def _tick(self, batch: list[Input]) -> bool:
        """One transaction; False when the disk refused it and every request in it was told so."""
        try:
            effects = await self._host.apply(batch, self._now())
        except StorageFull as error:
            self._storage_full(batch, error)
            return False
        except EngineFailed:
            log.exception("tick.failed", inputs=len(batch))
            self._outlet().reset()
            return await self._isolate(batch)
        self._see_room(full=self.rest.read_only)
        self._perform(effects)
        self._let_go(batch)
        crashpoint(CrashPoint.ENGINE_AFTER_EFFECTS)
        return True

    async def _isolate(self, batch: list[Input]) -> bool:
        """A bug met one of these inputs: try them one by one, so that it harms nobody but its sender.

        False when the disk was full from one of them on: those were told so.
        """
        refused: set[NodeId] = set()
        for place, item in enumerate(batch):
            if _follows(item, refused):
                self._perform(_failure(item))
                continue
            try:
                effects = await self._host.apply([item], self._now())
            except StorageFull as error:
                self._let_go(batch[:place])
                self._storage_full(batch[place:], error)
                return False
            except EngineFailed:
                log.exception("input.failed", kind=type(item).__name__)
                self._outlet().reset()
                self._perform(_failure(item))
                refused |= _streams([item])
                batch += self._withdraw(refused)  # comes up in this loop
            else:
                self._perform(effects)
        self._let_go(batch)
        return True

    def _let_go(self, batch: Iterable[Input]) -> None:
        for item in batch:
            if type(item) is PageRead:
                self._outlet().page_done(item)

    def _storage_full(self, batch: list[Input], error: StorageFull) -> None:
        self._see_room(full=True)
        self._outlet().reset()
        batch += self._withdraw(_streams(batch))
        for item in batch:
            if isinstance(item, PageRead | FloorRead):
                self._perform([_broken(item, error.code, str(error))])
            elif isinstance(item, Request):
                self._perform([Refused(item.req, error.code, str(error), error.hint, retryable=True)])
        self._let_go(batch)
        self._keep_for_later(batch)

    def _see_room(self, *, full: bool) -> None:
        before, self.storage_full = self.storage_full, full
        if full and not before:
            log.error("storage.full", hint=NO_ROOM)
        elif before and not full:
            log.info("storage.back")
            later, self._later = self._later, {}
            self._intake.put_back(later)

    def _withdraw(self, refused: set[NodeId]) -> list[Input]:
        """What follows a page or a floor that was not kept would be a hole; all of it is asked for again."""
        return self._intake.withdraw(lambda item: _follows(item, refused))

    # --- effects

    def _perform(self, effects: list[Effect]) -> None:
        perform(effects, self._outlet(), self.feed, self.copies, self._answer)

    def _answer(self, answer: Answer) -> None:
        on_answer = self._waiting.pop(answer.req, None)
        if on_answer is not None:
            on_answer(answer)

    def _outlet(self) -> Outlets:
        assert self.outlets is not None, "outlets are connected before the loop runs"
        return self.outlets

    def _now(self) -> Now:
        return Now(self._clock.wall_ms(), self._clock.mono_ms())


def _resolve(future: asyncio.Future[Answer], answer: Answer) -> None:
    if not future.done():
        future.set_result(answer)


def check(answer: Answer) -> Answer:
    """The answer, unless it is a refusal. Raises Denied."""
    if isinstance(answer, Refused):
        raise denial(answer)
    return answer


def denial(refused: Refused) -> Denied:
    """A refusal as an error."""
    return Denied(refused.code, refused.what, hint=refused.hint, retryable=refused.retryable)


def _failure(item: Input) -> list[Effect]:
    if isinstance(item, PageRead | FloorRead):
        return [_broken(item, "internal", "the page could not be handled")]
    if isinstance(item, Request):
        return [
            Refused(item.req, "internal", "the request could not be handled", "see the log", retryable=False)
        ]
    return []


def _broken(read: PageRead | FloorRead, code: str, what: str) -> StreamBroken:
    relay = read.relay if isinstance(read, PageRead) else None
    return StreamBroken(read.node, code, what, relay, read.link)


def _streams(batch: Iterable[Input]) -> set[NodeId]:
    return {item.node for item in batch if isinstance(item, PageRead | FloorRead)}


def _follows(item: Input, refused: set[NodeId]) -> bool:
    return isinstance(item, PageRead | FloorRead) and item.node in refused
