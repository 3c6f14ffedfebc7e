"""An engine inside the event loop, which stands still for as long as a commit takes."""

import asyncio
from collections.abc import Sequence

from gateway.engine.effects import Effect
from gateway.engine.inputs import Input, Now
from gateway.engine.rest import Rest
from gateway.hosting.ticking import Ticking


class InlineHost:
    """See ``EngineHost``: ``apply`` gives nobody else a turn."""

    def __init__(self, ticking: Ticking) -> None:
        self._ticking = ticking

    @property
    def rest(self) -> Rest:
        """After the last tick."""
        return self._ticking.rest

    async def apply(self, batch: Sequence[Input], now: Now) -> list[Effect]:
        """At once."""
        return self._ticking.apply(batch, now)

    async def watch(self) -> None:
        """It lives as long as the loop."""
        await asyncio.Event().wait()
