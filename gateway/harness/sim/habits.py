"""How agents behave: what each does with a turn, as odds."""

from enum import StrEnum

import msgspec

from gateway.harness.sim.dice import Dice


class Habit(StrEnum):
    """What an agent may do with a turn."""

    DONE = "done"
    FAILED = "failed"
    REPLY = "reply"
    NACK = "nack"
    EXTEND = "extend"
    """Asks for more time, then is done."""
    SLOW = "slow"
    """Works longer than its lease."""
    MUTE = "mute"
    """Never answers."""
    DIES = "dies"
    """Its socket closes with the turn in hand; it comes back as the same session, or as a new one."""
    ECHO = "echo"
    """Replies to everything, replies too."""


class Habits(msgspec.Struct, frozen=True):
    """Odds, of any sum."""

    odds: tuple[tuple[Habit, int], ...]

    def draw(self, dice: Dice) -> Habit:
        """What to do this time."""
        left = dice.between(1, sum(weight for _, weight in self.odds))
        for habit, weight in self.odds:
            left -= weight
            if left <= 0:
                return habit
        raise AssertionError("the odds are used up")


GOOD = Habits(((Habit.DONE, 6), (Habit.REPLY, 3), (Habit.FAILED, 1)))
"""Agents of a mesh whose agents are no trouble."""
QUIET = Habits(((Habit.DONE, 1),))
"""What all are at the end, so that a world can come to rest."""
BAD = Habits(
    (
        (Habit.DONE, 4),
        (Habit.REPLY, 3),
        (Habit.FAILED, 1),
        (Habit.NACK, 2),
        (Habit.EXTEND, 2),
        (Habit.SLOW, 2),
        (Habit.MUTE, 1),
        (Habit.DIES, 2),
    )
)
ECHOING = Habits(((Habit.ECHO, 3), (Habit.DONE, 1)))
