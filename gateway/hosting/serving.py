"""The end of the pipe where the engine is: a request comes in as bytes, its answer goes out as bytes."""

from collections.abc import Callable
from traceback import format_exception

from gateway.engine.inputs import Input, Now, ViewChanged
from gateway.hosting.host import EngineFailed
from gateway.hosting.messages import Bug, Build, Decided, Failed, Reply, Tick, decode_ask, encode, failure
from gateway.hosting.ticking import Ticking
from gateway.hosting.viewsteps import ViewStep, follow, nothing
from outbox.errors import MeshError, StorageFull
from stateroom.view import View


class Serving:
    """Serves one gateway, in order."""

    def __init__(self, make: Callable[[View, Now], Ticking]) -> None:
        self._make = make
        self._view: View | None = None
        self._ticking: Ticking | None = None

    def answer(self, text: bytes) -> bytes:
        """What there is to say to a request; whatever is wrong becomes its answer."""
        return encode(self._reply(decode_ask(text)))

    def _reply(self, ask: Build | Tick) -> Reply:
        try:
            return self._build(ask) if isinstance(ask, Build) else self._tick(ask)
        except MeshError as error:
            return failure(error, None)

    def _build(self, ask: Build) -> Decided:
        self._view = follow(nothing(ask.view.mesh), ask.view)
        self._ticking = self._make(self._view, ask.now)
        return Decided([], self._ticking.rest)

    def _tick(self, ask: Tick) -> Decided | Failed | Bug:
        ticking = self._ticking
        assert ticking is not None, "the first request is to build"
        batch = [self._input(item) for item in ask.batch]
        try:
            effects = ticking.apply(batch, ask.now)
        except StorageFull as error:
            return failure(error, ticking.rest)
        except EngineFailed as error:
            return Bug("".join(format_exception(error.__cause__ or error)), ticking.rest)
        return Decided(effects, ticking.rest)

    def _input(self, item: Input | ViewStep) -> Input:
        if not isinstance(item, ViewStep):
            return item
        assert self._view is not None, "a view was told when the engine was built"
        self._view = follow(self._view, item)
        return ViewChanged(self._view)
