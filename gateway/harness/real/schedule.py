"""When which fault happens to whom: all of it follows from the seed, before anything runs.

A node's process has one trouble at a time, and so has a link; faults of different nodes and links overlap
freely.
"""

from collections.abc import Sequence

from gateway.crashpoint import CrashPoint
from gateway.harness.real.faultclass import OF_LINKS, OF_MEMORY, FaultClass
from gateway.harness.real.injection import Injection
from gateway.harness.real.limits import FAULT_EVERY_MS, MEMORY_GAP_MS, WARM_UP_MS
from gateway.harness.real.place import Place
from gateway.harness.sim.dice import Dice
from gateway.judging.pasts import Way
from outbox.ids import NodeId

_LENGTH_MS: dict[FaultClass, tuple[int, int]] = {
    FaultClass.KILL: (100, 3_000),
    FaultClass.CRASH: (3_000, 6_000),
    FaultClass.STOP: (500, 8_000),
    FaultClass.PARTITION: (1_000, 12_000),
    FaultClass.ONEWAY: (1_000, 12_000),
    FaultClass.FLAP: (500, 4_000),
    FaultClass.SLOW: (3_000, 12_000),
    FaultClass.DISKFULL: (1_000, 6_000),
    FaultClass.SLOWFSYNC: (2_000, 8_000),
    FaultClass.FAILFSYNC: (1_000, 3_000),
    FaultClass.CLOCK: (3_000, 15_000),
    FaultClass.STORM: (500, 1_500),
    FaultClass.RESTORE: (3_000, 12_000),
    FaultClass.CLONE: (5_000, 15_000),
}
"""How long each lasts, shortest and longest; a crash at most so long."""

_AMOUNT: dict[FaultClass, tuple[int, int]] = {
    FaultClass.CRASH: (1, 20),
    FaultClass.SLOW: (50, 500),
    FaultClass.SLOWFSYNC: (20, 300),
    FaultClass.CLOCK: (10, 600),
    FaultClass.STORM: (2, 4),
    FaultClass.RESTORE: (500, 3_000),
}
"""How strong, in the units of ``Injection.amount``; a clock is ahead or behind, and of those that were put
back one in four meets the others at once."""

CRASH_POINTS: tuple[str, ...] = (
    CrashPoint.ENGINE_BEFORE_COMMIT,
    CrashPoint.ENGINE_AFTER_COMMIT,
    CrashPoint.ENGINE_AFTER_EFFECTS,
    CrashPoint.LINK_BEFORE_SUBMIT,
    CrashPoint.LINK_AFTER_COMMIT,
    CrashPoint.LINK_AFTER_SEEN,
    CrashPoint.ANSWER_BEFORE_SEND,
    CrashPoint.DELIVER_BEFORE_SEND,
    CrashPoint.DELIVER_AFTER_SEND,
)
"""Those that a mesh under load passes all the time; the others belong to joining and collecting."""

_POINTS: dict[FaultClass, tuple[str, ...]] = {
    FaultClass.CRASH: CRASH_POINTS,
    FaultClass.RESTORE: (Way.BACKUP, Way.COPY),
    FaultClass.CLONE: tuple(Place),
}
"""Where, or in which way."""


def schedule(
    seed: int, nodes: Sequence[NodeId], duration_ms: int, faults: Sequence[FaultClass]
) -> tuple[Injection, ...]:
    """The faults of a run, in order; the first node is the founding one."""
    calendar = _Calendar(Dice(seed, "schedule"), nodes, duration_ms)
    if FaultClass.SEEDLOSS in faults:
        calendar.lose_founder()
    random = [fault for fault in faults if fault is not FaultClass.SEEDLOSS]
    if random:
        calendar.fill(random)
    return tuple(sorted(calendar.injections, key=lambda one: (one.at_ms, one.fault, one.targets)))


class _Calendar:
    """Who is busy until when, and what was entered."""

    def __init__(self, dice: Dice, nodes: Sequence[NodeId], duration_ms: int) -> None:
        self.injections: list[Injection] = []
        self._dice = dice
        self._nodes = tuple(nodes)
        self._duration_ms = duration_ms
        self._ways: dict[FaultClass, list[str]] = {}
        """Of each class that has several, those that were not had yet."""

    def lose_founder(self) -> None:
        """A third to a half of the run without the founding node."""
        at_ms = int(self._duration_ms * (0.25 + 0.15 * self._dice.fraction()))
        for_ms = int(self._duration_ms * (0.3 + 0.2 * self._dice.fraction()))
        self._enter(FaultClass.SEEDLOSS, self._nodes[:1], at_ms, for_ms)

    def fill(self, faults: Sequence[FaultClass]) -> None:
        """One fault after the other until the end; each class comes before one comes twice."""
        at_ms = WARM_UP_MS
        waiting: list[FaultClass] = []
        while at_ms < self._duration_ms:
            if not waiting:
                waiting = sorted(faults, key=lambda _: self._dice.fraction())
            fault = next((one for one in waiting if self._try(one, at_ms)), None)
            if fault is not None:
                waiting.remove(fault)
            at_ms += self._dice.spaced(FAULT_EVERY_MS * 1_000) // 1_000

    def _try(self, fault: FaultClass, at_ms: int) -> bool:
        low, high = _LENGTH_MS[fault]
        for_ms = min(self._dice.between(low, high), self._duration_ms - at_ms)
        targets = self._targets(fault)
        if any(self._clash(one, fault, targets, at_ms, at_ms + for_ms) for one in self.injections):
            return False
        self._enter(fault, targets, at_ms, for_ms)
        return True

    def _targets(self, fault: FaultClass) -> tuple[NodeId, ...]:
        first = self._dice.among(self._nodes)
        if fault is FaultClass.STORM:
            return self._nodes
        if fault not in OF_LINKS:
            return (first,)
        return first, self._dice.among([node for node in self._nodes if node != first])

    def _clash(
        self, one: Injection, fault: FaultClass, targets: tuple[NodeId, ...], at_ms: int, until_ms: int
    ) -> bool:
        both_forget = {fault, one.fault} <= OF_MEMORY
        gap_ms = MEMORY_GAP_MS if both_forget else _GAP_MS
        if one.until_ms + gap_ms <= at_ms or until_ms + gap_ms <= one.at_ms:
            return False
        if both_forget:
            return True
        if (one.fault in OF_LINKS) != (fault in OF_LINKS):
            return False
        if fault in OF_LINKS:
            return set(one.targets) == set(targets)
        if FaultClass.STORM in {fault, one.fault}:
            return FaultClass.SEEDLOSS not in {fault, one.fault}
        return bool(set(one.targets) & set(targets))

    def _enter(self, fault: FaultClass, targets: tuple[NodeId, ...], at_ms: int, for_ms: int) -> None:
        amount = self._dice.between(*_AMOUNT[fault]) if fault in _AMOUNT else 0
        if fault is FaultClass.CLOCK and self._dice.chance(0.5):
            amount = -amount
        if fault is FaultClass.RESTORE and self._dice.chance(0.25):
            amount = 0
        point = self._point(fault) if fault in _POINTS else ""
        self.injections.append(
            Injection(at_ms=at_ms, fault=fault, targets=targets, for_ms=for_ms, amount=amount, point=point)
        )

    def _point(self, fault: FaultClass) -> str:
        """Each way to forget comes before one comes twice: a run has few of them."""
        if fault not in OF_MEMORY:
            return self._dice.among(_POINTS[fault])
        left = self._ways.get(fault) or list(_POINTS[fault])
        point = self._dice.among(left)
        self._ways[fault] = [other for other in left if other != point]
        return point


_GAP_MS = 1_000
"""Between two faults of one target, for it to come back."""
