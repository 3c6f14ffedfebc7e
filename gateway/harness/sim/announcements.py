"""What the operator of one node wants to announce, and what the gateway took of it."""

from collections import deque

import msgspec

from gateway.engine.effects import Told
from gateway.engine.inputs import Maintain
from gateway.errors import Busy, Denied
from gateway.harness.sim.gateway import SimGateway
from outbox.envelope import MaintenanceNotice
from outbox.ids import EventId
from outbox.timestamps import rfc3339


class Announcement(msgspec.Struct, frozen=True):
    """Of maintenance."""

    for_ms: int | None = None
    """How long the operator expects to be away, if he says so."""
    reason: str = ""
    over: bool = False


class Announcements:
    """Said in order; what got no answer, since the process died or its disk is full, is said again."""

    def __init__(self) -> None:
        self.told: set[EventId] = set()
        """Events that announce it, as the gateway has said."""
        self._wanted: deque[Announcement] = deque()

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def want(self, said: Announcement) -> None:
        """Say this as soon as the gateway runs."""
        self._wanted.append(said)

    async def say(self, gateway: SimGateway) -> None:
        """Say as much as can be said now."""
        while self._wanted:
            said = self._wanted[0]
            until = None if said.for_ms is None else rfc3339(gateway.home.clock.wall_ms() + said.for_ms)
            notice = MaintenanceNotice(until=until, reason=said.reason, over=said.over)
            try:
                answer = await gateway.runtime.ask(Maintain(req=gateway.runtime.req(), notice=notice))
            except (Busy, Denied):
                return
            assert isinstance(answer, Told)
            self._wanted.popleft()
            self.told.add(answer.event_id)
