"""Where an engine lives, as its runtime sees it: inputs go in, effects come back, and are on disk by then."""

from collections.abc import Callable, Sequence
from typing import Protocol

from gateway.engine import Engine
from gateway.engine.effects import Effect
from gateway.engine.inputs import Input, Now
from gateway.engine.rest import Rest
from stateroom.view import View

MakeEngine = Callable[[View, Now], Engine]
"""A new engine, from what is on disk."""


class EngineFailed(Exception):
    """A bug met one of the inputs. Nothing of the batch was kept; the text is the traceback."""


class EngineHost(Protocol):
    """One engine and its journal. One batch at a time."""

    @property
    def rest(self) -> Rest:
        """What the engine said of itself after its last tick, or when it was built anew."""
        ...

    async def apply(self, batch: Sequence[Input], now: Now) -> list[Effect]:
        """One transaction: decide on all of it, and make that durable with one fsync.

        Raises StorageFull and EngineFailed: nothing was kept, and the engine was built anew from the journal.
        Raises StorageFailed (the disk can no longer be trusted) and EngineLost: there is no engine any more.
        """
        ...

    async def watch(self) -> None:
        """Until cancelled. Raises EngineLost when the engine is gone between two batches."""
        ...
