"""Whether the peer of a link is still there, and how far its clock is from ours: pings out, pongs back."""

import asyncio
from collections.abc import Callable

from gateway.clock import Clock
from gateway.engine.inputs import ClockMeasured
from gateway.limits import PING_EVERY_S
from gateway.links.errors import LinkEnded
from gateway.links.offset import Offset
from gateway.links.outgoing import Outgoing
from gateway.wire.frames import Ping, Pong
from outbox.ids import NodeId


class Pulse:
    """One link's; ``stirred`` wakes the link's writer, ``tell`` hears of the peer's clock."""

    def __init__(
        self,
        peer: NodeId,
        clock: Clock,
        outgoing: Outgoing,
        *,
        stirred: asyncio.Event,
        tell: Callable[[ClockMeasured], None],
    ) -> None:
        self.offset = Offset(peer)
        self._peer = peer
        self._clock = clock
        self._outgoing = outgoing
        self._stirred = stirred
        self._tell = tell
        self._heard_ms = clock.mono_ms()

    def heard(self) -> None:
        """The peer has said something."""
        self._heard_ms = self._clock.mono_ms()

    def hear(self, frame: Ping | Pong) -> None:
        """Answer a ping; tell of a pong what it shows of the peer's clock, when that is news."""
        clock = self._clock
        if isinstance(frame, Ping):
            self._outgoing.pong = Pong(frame.at_ms, clock.wall_ms())
            self._stirred.set()
        elif (news := self.offset.measure(frame, clock.mono_ms(), clock.wall_ms())) is not None:
            self._tell(news)

    async def beat(self) -> None:
        """Ping until cancelled. Raises LinkEnded when the peer has been silent for two pings."""
        while True:
            self._outgoing.ping = Ping(self._clock.mono_ms())
            self._stirred.set()
            await asyncio.sleep(PING_EVERY_S)
            if self._clock.mono_ms() - self._heard_ms > 2 * PING_EVERY_S * 1000:
                raise LinkEnded(f"{self._peer} has been silent too long")
