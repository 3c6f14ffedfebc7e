"""One fault of a run: when, what, to whom, for how long."""

import msgspec

from gateway.harness.real.faultclass import FaultClass
from outbox.ids import NodeId


class Injection(msgspec.Struct, frozen=True, kw_only=True):
    """One fault. Times are since the start of the talk."""

    at_ms: int
    fault: FaultClass
    targets: tuple[NodeId, ...]
    """One node, two of a link (one-way: from, to), or all."""
    for_ms: int
    amount: int = 0
    """Milliseconds that a link or a sync is late, seconds that a clock is off, rounds of a storm, the passing
    of a crash point that kills, or milliseconds in which nobody reaches a node that was put back."""
    point: str = ""
    """The name of the crash point where a crash happens; of a restore and of a clone, in which way."""

    @property
    def until_ms(self) -> int:
        """Its end."""
        return self.at_ms + self.for_ms

    @property
    def line(self) -> str:
        """For people."""
        between = " > " if self.fault is FaultClass.ONEWAY else " "
        how = ":".join(part for part in (self.point, str(self.amount or "")) if part)
        in_way = f" ({how})" if how else ""
        whom = between.join(self.targets)
        return f"{self.at_ms / 1000:7.1f} s  {self.fault:<10} {whom} for {self.for_ms / 1000:.1f} s{in_way}"
