"""What goes wrong in a world, class by class: each fault begins at its time and ends after a while."""

from collections.abc import Callable

from gateway.crashpoint import CrashPoint
from gateway.harness.sim import goingback
from gateway.harness.sim.allowing import start_with_room
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.gateway import SimGateway
from gateway.harness.sim.loop import SimLoop
from gateway.harness.sim.mesh import SimMesh
from gateway.harness.sim.network import Weather
from gateway.harness.sim.plan import Fault
from gateway.harness.sim.upkeep import maintenance
from outbox.ids import NodeId

End = Callable[[], None]

_FIRST_US = 10_000_000
_LASTS_US = 20_000_000
"""Mean duration of a fault."""
_AWAY_US = 240_000_000
"""Mean time for which a node is away: longer than the leases of readers and the graces of owners."""
_LONG = frozenset({Fault.AWAY, Fault.FALLBACK, Fault.MAINTENANCE})
_DOWN_US = 8_000_000
"""Mean time until a dead process is started again."""
_TWINS_FOUND_US = 180_000_000
"""After all other faults: in this time both of two that run on one home must have been told."""
CLOCK_ERROR_MS = 300_000
"""Wall clocks are wrong by at most five minutes; what waits for a wall clock may come so much later."""

_POINTS = (
    CrashPoint.ENGINE_BEFORE_COMMIT,
    CrashPoint.ENGINE_AFTER_COMMIT,
    CrashPoint.ENGINE_AFTER_EFFECTS,
    CrashPoint.LINK_BEFORE_SUBMIT,
    CrashPoint.LINK_AFTER_COMMIT,
    CrashPoint.LINK_AFTER_SEEN,
)


class Troubles:
    """The faults of one world."""

    def __init__(self, mesh: SimMesh, loop: SimLoop) -> None:
        self.mesh = mesh
        self.loop = loop
        self.begun = 0
        """Faults so far."""
        self.backed_up: set[NodeId] = set()
        self.is_on = False
        self._ends: dict[int, End] = {}
        self.in_upkeep: set[NodeId] = set()
        """Nodes whose operator has taken them out of service."""
        self.away: NodeId | None = None
        """The node that is away."""
        mesh.mended = lambda name: self.later(_DOWN_US, mesh.start, name)

    def start(self) -> None:
        """Each class that is on goes wrong for the first time soon."""
        self.is_on = True
        for fault in _TROUBLES:
            if fault in self.mesh.plan.faults:
                dice = Dice(self.mesh.plan.seed, f"fault {fault}")
                self.later(dice.between(0, _FIRST_US), self._happen, fault, dice)

    def stop(self) -> None:
        """All faults end; what is broken is mended."""
        self.is_on = False
        for number in list(self._ends):
            self._end(number)
        mesh = self.mesh
        mesh.network.open_all()
        mesh.network.loss = 0.0
        mesh.away.clear()
        for home in mesh.homes.values():
            home.clock.correct()
            home.disk.full, home.disk.slow_us = False, 0
        for gateway in mesh.living():
            gateway.loop.steps_left = gateway.loop.fatal = None
        start_with_room(mesh)
        self.later(_TWINS_FOUND_US, mesh.stop_twins)

    def _happen(self, fault: Fault, dice: Dice) -> None:
        if not self.is_on:
            return
        self.later(dice.spaced(self.mesh.plan.every_s * 1_000_000), self._happen, fault, dice)
        end = _TROUBLES[fault](self, dice)
        self.begun += 1
        if end is not None:
            self._ends[self.begun] = end
            lasts_us = _AWAY_US if fault in _LONG else _LASTS_US
            self.later(dice.spaced(lasts_us), self._end, self.begun)

    def _end(self, number: int) -> None:
        end = self._ends.pop(number, None)
        if end is not None:
            end()

    def later(self, us: int, action: Callable[..., None], *args: object) -> None:
        """Do it after a while."""
        self.loop.call_later(us / 1e6, action, *args)

    # --- used by the faults

    def victim(self, dice: Dice) -> SimGateway | None:
        """A running process."""
        living = self.mesh.living()
        return dice.among(living) if living else None

    def pair(self, dice: Dice) -> tuple[NodeId, NodeId]:
        """Two nodes."""
        one = dice.among(self.mesh.names)
        return one, dice.among([name for name in self.mesh.names if name != one])

    def note(self, who: str, what: str, details: str = "") -> None:
        """Into the trace."""
        self.mesh.chronicle.note(who, what, details)

    def restart(self, name: NodeId, dice: Dice) -> None:
        """Start it again after a while."""
        self.later(dice.spaced(_DOWN_US), self.mesh.start, name)


# --- the network


def _delay(troubles: Troubles, dice: Dice) -> End:
    return _weather(troubles, dice, Weather(dice.between(100_000, 3_000_000), 0))


def _slow_link(troubles: Troubles, dice: Dice) -> End:
    return _weather(troubles, dice, Weather(50_000, dice.between(500, 20_000)))


def _weather(troubles: Troubles, dice: Dice, weather: Weather) -> End:
    one, other = troubles.pair(dice)
    troubles.note("net", "slow", f"{one} to {other}: {weather.delay_us} us, {weather.bytes_per_s} B/s")
    troubles.mesh.network.slow(one, other, weather)
    return lambda: troubles.mesh.network.slow(one, other, None)


def _reset(troubles: Troubles, dice: Dice) -> End:
    network = troubles.mesh.network
    network.loss = dice.among((0.002, 0.01, 0.05))
    troubles.note("net", "resets", str(network.loss))

    def end() -> None:
        network.loss = 0.0

    return end


def _partition(troubles: Troubles, dice: Dice) -> End:
    ones = [name for name in troubles.mesh.names if dice.chance(0.5)]
    others = [name for name in troubles.mesh.names if name not in ones]
    return _block(
        troubles, [*((a, b) for a in ones for b in others), *((b, a) for a in ones for b in others)]
    )


def _one_way(troubles: Troubles, dice: Dice) -> End:
    return _block(troubles, [troubles.pair(dice)])


def _away(troubles: Troubles, dice: Dice) -> End | None:
    """One at a time; often from one other alone, and that the one which carries for it."""
    if troubles.away is not None:
        return None
    troubles.away, other = troubles.pair(dice)
    carriers = sorted(troubles.mesh.topology.mirrors - {troubles.away})
    others = [dice.among(carriers) if carriers and dice.chance(0.7) else other]
    if dice.chance(0.5):
        others = [name for name in troubles.mesh.names if name != troubles.away]
    end = _block(troubles, [way for name in others for way in ((troubles.away, name), (name, troubles.away))])

    def back() -> None:
        troubles.away = None
        end()

    return back


def _block(troubles: Troubles, directions: list[tuple[NodeId, NodeId]]) -> End:
    network = troubles.mesh.network
    mine = [(a, b) for a, b in directions if not network.is_blocked(a, b)]
    troubles.note("net", "blocked", " ".join(f"{a}>{b}" for a, b in mine))
    for source, target in mine:
        network.block(source, target)

    def end() -> None:
        troubles.note("net", "open", " ".join(f"{a}>{b}" for a, b in mine))
        for source, target in mine:
            network.open(source, target)

    return end


# --- processes


def _crash(troubles: Troubles, dice: Dice) -> None:
    gateway = troubles.victim(dice)
    if gateway is not None:
        gateway.loop.steps_left = dice.between(0, 300)
        _watch_death(troubles, gateway, dice)


def _crash_point(troubles: Troubles, dice: Dice) -> None:
    gateway, point = troubles.victim(dice), dice.among(_POINTS)
    if gateway is not None:
        gateway.loop.fatal = _passing(point, dice.between(1, 6))
        _watch_death(troubles, gateway, dice)


def _lost_commit(troubles: Troubles, dice: Dice) -> None:
    gateway = troubles.victim(dice)
    if gateway is not None:
        gateway.loop.fatal = _passing(CrashPoint.ENGINE_AFTER_COMMIT, dice.between(1, 6))
        gateway.home.disk.may_lose_a_commit()
        _watch_death(troubles, gateway, dice, lose_commit=True)


def _failed_sync(troubles: Troubles, dice: Dice) -> None:
    """Nobody has heard of the commit; it may be on the disk or not."""
    gateway, is_lost = troubles.victim(dice), dice.chance(0.5)
    if gateway is None:
        return
    name, loop = NodeId(gateway.name), gateway.loop
    loop.fatal = _passing(CrashPoint.ENGINE_AFTER_COMMIT, dice.between(1, 6))
    gateway.home.disk.may_lose_a_commit()

    def died() -> None:
        inside = loop.died_at == CrashPoint.ENGINE_AFTER_COMMIT
        troubles.mesh.kill(name, lose_commit=is_lost and inside)
        if inside:
            troubles.note(name, "fails", "to sync")
            troubles.mesh.homes[name].failed()
        troubles.restart(name, dice)

    loop.on_death = died


def _passing(point: CrashPoint, nth: int) -> Callable[[str], bool]:
    left = nth

    def fatal(place: str) -> bool:
        nonlocal left
        left -= place == point
        return left <= 0 and place == point

    return fatal


def _watch_death(troubles: Troubles, gateway: SimGateway, dice: Dice, *, lose_commit: bool = False) -> None:
    name = NodeId(gateway.name)

    def died() -> None:
        inside = gateway.loop.died_at == CrashPoint.ENGINE_AFTER_COMMIT  # nobody has heard of that commit
        troubles.mesh.kill(name, lose_commit=lose_commit and inside)
        troubles.restart(name, dice)

    gateway.loop.on_death = died


def _stop(troubles: Troubles, dice: Dice) -> None:
    gateway = troubles.victim(dice)
    if gateway is not None:
        us = dice.spaced(_LASTS_US)
        troubles.note(gateway.name, "stands", f"{us} us")
        gateway.loop.stop_for(us)


# --- disks and clocks


def _disk_full(troubles: Troubles, dice: Dice) -> End:
    name = dice.among(troubles.mesh.names)
    disk = troubles.mesh.homes[name].disk
    troubles.note(name, "disk", "full")
    disk.full = True

    def end() -> None:
        troubles.note(name, "disk", "has room")
        disk.full = False

    return end


def _slow_disk(troubles: Troubles, dice: Dice) -> End:
    name = dice.among(troubles.mesh.names)
    disk = troubles.mesh.homes[name].disk
    disk.slow_us = dice.among((5_000, 200_000, 3_000_000))
    troubles.note(name, "disk", f"takes {disk.slow_us} us")

    def end() -> None:
        disk.slow_us = 0

    return end


def _jump(troubles: Troubles, dice: Dice) -> None:
    name = dice.among(troubles.mesh.names)
    clock = troubles.mesh.homes[name].clock
    clock.offset_ms = dice.between(-CLOCK_ERROR_MS, CLOCK_ERROR_MS)
    troubles.note(name, "clock", f"{clock.offset_ms:+d} ms")


def _clock_stop(troubles: Troubles, dice: Dice) -> End:
    name = dice.among(troubles.mesh.names)
    clock = troubles.mesh.homes[name].clock
    troubles.note(name, "clock", "stops")
    clock.stop()
    return clock.go


# --- agents


def _removal(troubles: Troubles, dice: Dice) -> End:
    agent = dice.among(troubles.mesh.agents[dice.among(troubles.mesh.names)]).name
    troubles.mesh.away.add(agent)
    return lambda: troubles.mesh.away.discard(agent)


_TROUBLES: dict[Fault, Callable[[Troubles, Dice], End | None]] = {
    Fault.DELAY: _delay,
    Fault.RESET: _reset,
    Fault.PARTITION: _partition,
    Fault.ONE_WAY: _one_way,
    Fault.SLOW_LINK: _slow_link,
    Fault.CRASH: _crash,
    Fault.CRASH_POINT: _crash_point,
    Fault.LOST_COMMIT: _lost_commit,
    Fault.FAILED_SYNC: _failed_sync,
    Fault.STOP: _stop,
    Fault.RESTORE: goingback.restore,
    Fault.CLONE: goingback.clone,
    Fault.DISK_FULL: _disk_full,
    Fault.SLOW_DISK: _slow_disk,
    Fault.JUMP: _jump,
    Fault.CLOCK_STOP: _clock_stop,
    Fault.REMOVAL: _removal,
    Fault.AWAY: _away,
    Fault.FALLBACK: _away,
    Fault.MAINTENANCE: maintenance,
}
