"""Errands that were under way when the gateway stopped: which module goes on with which after a start."""

from collections.abc import Callable

from gateway.engine.acceptances import TakingBack
from gateway.engine.blobs import Arriving, Losing
from gateway.engine.errands import Task, Work
from gateway.engine.farewell import Ending
from gateway.engine.inquiries import Asking
from gateway.engine.leaving import Leaving
from gateway.engine.newcomers import Joining
from gateway.engine.questioning import AskingAgain, Questioning, TakingHands
from gateway.engine.recall import Hearing, Releasing
from gateway.engine.repeating import OwingAgain, SayingAgain
from gateway.engine.telling import Answering, AnsweringNamed
from gateway.engine.tick import Tick
from gateway.engine.turns import Turns
from gateway.engine.vouching import Vouching
from outbox.records import Errand

_ALONE: dict[Task, Callable[[Errand], Work[Tick]]] = {
    Task.ASKING: Asking,
    Task.ENDING: Ending,
    Task.LAPSE: TakingBack,
    Task.NAMED: AnsweringNamed,
    Task.OWING: OwingAgain,
    Task.RECALL: Answering,
    Task.SAYING: SayingAgain,
}
_WITH_TURNS: dict[Task, Callable[[Turns, Errand], Work[Tick]]] = {
    Task.ARRIVAL: Arriving,
    Task.HANDS: TakingHands,
    Task.HEARD: Hearing,
    Task.JOINING: Joining,
    Task.LEAVING: Leaving,
    Task.LOSS: Losing,
    Task.VOUCHING: Vouching,
}
_IN_ORDER: dict[Task, type[AskingAgain | Questioning | Releasing]] = {
    Task.AGAIN: AskingAgain,
    Task.QUESTION: Questioning,
    Task.RELEASE: Releasing,
}


def resumed(row: Errand, turns: Turns) -> Work[Tick]:
    """What does the rest of it. Raises ValueError for one of a later version."""
    task = Task(row.kind)
    if task in _IN_ORDER:
        work = _IN_ORDER[task](turns, row)
        work.left.sort_all()
        return work
    alone = _ALONE.get(task)
    return alone(row) if alone is not None else _WITH_TURNS[task](turns, row)
