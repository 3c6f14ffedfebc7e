"""What others may want to know of an engine between two of its ticks; it may live in another process."""

import msgspec

from gateway.engine.inputs import Now
from gateway.engine.own_stream import Standing
from gateway.engine.steadyclock import steady


class Rest(msgspec.Struct, frozen=True):
    """True from the end of one tick to the beginning of the next."""

    wake_ms: int | None
    """When a tick without inputs will have something to do, on the monotonic clock; None: never."""
    clock: Now
    """Where the lead of the engine's clock over the machine's began."""
    standing: Standing
    """How the own outbox stands in the mesh."""
    read_only: bool = False
    """There is no room on the disk: it does what needs none, and looks for some from time to time."""

    def wall_ms(self, now: Now) -> int:
        """The time by which the engine judges: what it is to judge later must be dated by it."""
        return steady(self.clock, now).wall_ms
