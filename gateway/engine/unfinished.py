"""Errands that the engine before has left: who goes on with which."""

from gateway.engine.acceptances import TakingBack
from gateway.engine.errands import Task, Work
from gateway.engine.inquiries import Asking
from gateway.engine.leaving import Leaving
from gateway.engine.recall import Answering, Releasing
from gateway.engine.tick import Tick
from gateway.engine.turns import Turns
from outbox.records import Errand


def resumed(row: Errand, turns: Turns) -> Work[Tick]:
    """What does the rest of it, and once more what was done. Raises ValueError for one of a later version."""
    match Task(row.kind):
        case Task.ASKING:
            return Asking(row)
        case Task.LAPSE:
            return TakingBack(row)
        case Task.LEAVING:
            return Leaving(turns, row)
        case Task.RECALL:
            return Answering(row)
        case Task.RELEASE:
            return Releasing(turns, row)
