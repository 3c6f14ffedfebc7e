"""The simulated network: connections in order and without loss until they break, as TCP gives them.

What happens to a direction between two nodes happens to all connections on it: a blocked one holds what is
on its way until it opens again, a slow one takes its time. A connection breaks by chance, or with the process
at its end; what was on its way is lost then, and comes again over the next one.
"""

from asyncio import Future
from collections.abc import Callable
from typing import NamedTuple

from gateway.harness.sim.dice import Dice
from gateway.harness.sim.loop import SimLoop
from gateway.harness.sim.timeline import SimHandle, Timeline
from gateway.harness.sim.wire import Party, Wire, WireEnd

_DIAL_TIMEOUT_US = 10_000_000
"""Of a dialler that nobody answers, as of ``stateroom.limits``."""


class Weather(NamedTuple):
    """How one direction is doing."""

    delay_us: int
    bytes_per_s: int
    """0: as fast as it likes."""


class Network:
    """All connections of a world, and what is wrong with them."""

    def __init__(self, timeline: Timeline, dice: Dice, weather: Weather) -> None:
        self.timeline = timeline
        self.loss = 0.0
        """The probability that a message breaks its connection instead of arriving."""
        self.tap: Callable[[WireEnd, bytes], None] = lambda _end, _message: None
        """Sees each message as it leaves its process."""
        self.heard: Callable[[WireEnd, bytes], None] = lambda _end, _message: None
        """Sees each message as a process takes it from its end."""
        self.alter: Callable[[WireEnd, bytes], bytes] = lambda _end, message: message
        """What a message becomes on its way."""
        self.meet: Callable[[str, str], bool] = lambda _one, _other: True
        """Whether two nodes can ever have a connection."""
        self.broke: Callable[[Wire], None] = lambda _wire: None
        self._dice = dice
        self._fair = weather
        self._slow: dict[tuple[str, str], Weather] = {}
        self._blocked: dict[tuple[str, str], list[Callable[[], None]]] = {}
        self._parties: dict[str, Party] = {}
        self._wires: dict[int, Wire] = {}

    # --- who is there

    def join(self, party: Party) -> None:
        """It can be dialled."""
        self._parties[party.name] = party

    def leave(self, name: str) -> None:
        """Its process is gone: whoever can be told is told."""
        self._parties.pop(name, None)
        for wire in [wire for wire in self._wires.values() if name in wire.names]:
            self.drop(wire)

    def hang_up(self, party: Party) -> None:
        """A process that nobody could dial is gone."""
        for wire in [wire for wire in self._wires.values() if any(end.owner is party for end in wire.ends)]:
            self.drop(wire)

    # --- what is wrong

    def block(self, source: str, target: str) -> None:
        """Nothing gets through in this direction."""
        self._blocked.setdefault((source, target), [])

    def open(self, source: str, target: str) -> None:
        """It does again: what waited sets out."""
        for go in self._blocked.pop((source, target), []):
            go()

    def open_all(self) -> None:
        """Every direction is fair and open."""
        self._slow.clear()
        for source, target in list(self._blocked):
            self.open(source, target)

    def is_blocked(self, source: str, target: str) -> bool:
        """Whether nothing gets through."""
        return (source, target) in self._blocked

    def slow(self, source: str, target: str, weather: Weather | None) -> None:
        """Let this direction be slower than the others; None ends it."""
        if weather is None:
            self._slow.pop((source, target), None)
        else:
            self._slow[source, target] = weather

    def wires(self) -> list[Wire]:
        """The connections that are up, oldest first."""
        return list(self._wires.values())

    def drop(self, wire: Wire) -> None:
        """Break a connection: its ends hear of it as far as they can be reached."""
        if self._wires.pop(wire.number, None) is None:
            return
        self.broke(wire)
        for end in wire.ends:
            self.send(end.other, end.break_off, size=0)

    # --- dialling

    async def dial(self, caller: Party, target: str, channel: str) -> WireEnd:
        """A new connection. Raises OSError when nobody is there, TimeoutError when nobody answers."""
        source = caller.name
        if self.is_blocked(source, target) or self.is_blocked(target, source):
            await self._pause(caller.loop, _DIAL_TIMEOUT_US)
            raise TimeoutError(f"{target} does not answer")
        await self._pause(
            caller.loop, self._delay_us((source, target), 0) + self._delay_us((target, source), 0)
        )
        party = self._parties.get(target)
        if party is None or party.loop.dead or not self.meet(source, target):
            raise ConnectionRefusedError(f"nobody listens at {target}")
        wire = Wire(self, self.timeline.serial(), channel, caller, party)
        self._wires[wire.number] = wire
        self._run_in(party.loop, self.timeline.now_us, lambda: party.accept(channel, source, wire.ends[1]))
        return wire.ends[0]

    # --- carrying

    def carry(self, end: WireEnd, arrive: Callable[[], None], size: int) -> None:
        """Take one message from an end to the other, or break the connection."""
        if self.loss and self._dice.chance(self.loss):
            self.drop(end.wire)
        else:
            self.send(end, arrive, size=size)

    def send(self, end: WireEnd, arrive: Callable[[], None], *, size: int) -> None:
        """Let something arrive at the far end, after all that set out before it on this end."""
        held = self._blocked.get(end.direction)
        if held is not None:
            held.append(lambda: self.send(end, arrive, size=size))
            return
        due_us = max(end.last_due_us, self.timeline.now_us + self._delay_us(end.direction, size))
        end.last_due_us = due_us
        self._run_in(end.other.owner.loop, due_us, arrive)

    def _delay_us(self, direction: tuple[str, str], size: int) -> int:
        weather = self._slow.get(direction, self._fair)
        travel_us = self._dice.between(weather.delay_us // 2, weather.delay_us * 3 // 2)
        return travel_us + (size * 1_000_000 // weather.bytes_per_s if weather.bytes_per_s else 0)

    def _run_in(self, loop: SimLoop, when_us: int, action: Callable[[], None]) -> None:
        self.timeline.at(when_us, SimHandle(action, (), loop))

    async def _pause(self, loop: SimLoop, us: int) -> None:
        woken: Future[None] = loop.create_future()
        self._run_in(loop, self.timeline.now_us + us, lambda: _resolve(woken))
        await woken


def _resolve(future: "Future[None]") -> None:
    if not future.done():
        future.set_result(None)
