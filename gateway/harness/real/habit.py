"""What agents do with their turns: one habit an agent, one of each on every node."""

from enum import StrEnum

from outbox.ids import AgentId, NodeId


class Habit(StrEnum):
    """Good and bad ones."""

    PROMPT = "prompt"
    """Replies to half, acknowledges the rest, fails now and then."""
    SLOW = "slow"
    """Does the same after a while, longer than its lease when several wait."""
    NACKING = "nacking"
    """Gives each turn back once."""
    MORTAL = "mortal"
    """Dies with a turn in its hands, and comes back: half the time as the same session."""
    SILENT = "silent"
    """Takes one turn in three and never says a word about it."""


class Deed(StrEnum):
    """What becomes of one turn."""

    REPLY = "reply"
    OK = "ok"
    FAIL = "fail"
    NACK = "nack"
    DIE = "die"
    IGNORE = "ignore"


def agent_of(habit: Habit, node: NodeId) -> AgentId:
    """The agent of this habit that lives there."""
    return AgentId(f"{habit}-{node}")


def deed(habit: Habit, delivery_count: int, fraction: float, *, message: bool, behaved: bool) -> Deed:
    """What this agent does with this delivery, for a random ``fraction`` of at least 0 and below 1.

    ``behaved``: the faults are over, and so are bad habits. Replies (no ``message``) get no reply.
    """
    first = delivery_count == 1
    if not behaved:
        if habit is Habit.NACKING and first:
            return Deed.NACK
        if habit is Habit.MORTAL and fraction < _DIES:
            return Deed.DIE
        if habit is Habit.SILENT and fraction < _IGNORES:
            return Deed.IGNORE
    if not message:
        return Deed.OK
    if fraction > 1 - _FAILS:
        return Deed.FAIL
    return Deed.REPLY if fraction > _REPLIES else Deed.OK


_DIES, _IGNORES, _FAILS, _REPLIES = 0.1, 0.33, 0.05, 0.6
