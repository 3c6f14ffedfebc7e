"""The end of the pipe where the gateway is: an engine that is somewhere else."""

from collections.abc import Sequence
from typing import Protocol, Self

from gateway.engine.effects import Effect
from gateway.engine.inputs import Input, Now, ViewChanged
from gateway.engine.rest import Rest
from gateway.hosting.host import EngineFailed
from gateway.hosting.messages import Bug, Build, Decided, Failed, Opened, Tick, decode_reply, encode, error_of
from gateway.hosting.viewsteps import ViewStep, nothing, step
from stateroom.view import View


class Line(Protocol):
    """To the process with the engine."""

    async def exchange(self, text: bytes) -> bytes:
        """One request, its answer. Raises EngineLost."""
        ...

    async def watch(self) -> None:
        """Until cancelled. Raises EngineLost when nobody is at the other end any more."""
        ...


class PipedHost:
    """See ``EngineHost``: while a batch is on its way to disk the event loop goes on."""

    def __init__(self, line: Line, view: View, rest: Rest) -> None:
        self._line = line
        self._told = view
        """The view that the other end knows."""
        self.rest = rest

    @classmethod
    async def build(cls, line: Line, view: View, now: Now) -> Self:
        """Have an engine made over there. Raises as ``apply``."""
        reply = decode_reply(await line.exchange(encode(Build(step(nothing(view.mesh), view), now))))
        if isinstance(reply, Failed):
            raise error_of(reply)
        assert isinstance(reply, Decided)
        return cls(line, view, reply.rest)

    async def apply(self, batch: Sequence[Input], now: Now) -> list[Effect]:
        """Others have their turns meanwhile."""
        tick = Tick([self._wire(item) for item in batch], now)
        reply = decode_reply(await self._line.exchange(encode(tick)))
        assert not isinstance(reply, Opened)
        if reply.rest is not None:
            self.rest = reply.rest
        match reply:
            case Decided():
                return reply.effects
            case Failed():
                raise error_of(reply)
            case Bug():
                raise EngineFailed(reply.trace)

    async def watch(self) -> None:
        """See ``Line``."""
        await self._line.watch()

    def _wire(self, item: Input) -> Input | ViewStep:
        if not isinstance(item, ViewChanged):
            return item
        told, self._told = step(self._told, item.view), item.view
        return told
