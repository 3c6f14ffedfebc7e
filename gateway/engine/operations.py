"""What an operator asks for that is no agent's turn: each input to the module that knows it."""

from gateway.engine import pastincidents, recall, redrive
from gateway.engine.closing import CloseIncidents
from gateway.engine.deadletters import Dismiss, Redrive
from gateway.engine.doubts import EndDoubts
from gateway.engine.effects import Answer
from gateway.engine.inputs import Maintain
from gateway.engine.maintenance import maintain
from gateway.engine.residents import Residents
from gateway.engine.tick import Tick
from gateway.engine.turns import Turns

Operation = Redrive | Dismiss | EndDoubts | CloseIncidents | Maintain


def handle(tick: Tick, residents: Residents, turns: Turns, item: Operation) -> Answer:
    """Do it. Raises CallerError branches, as the modules say."""
    match item:
        case Redrive() | Dismiss():
            return redrive.handle(tick, residents, item)
        case CloseIncidents():
            return pastincidents.close(tick, item)
        case Maintain():
            return maintain(tick, item)
        case _:
            return recall.release(tick, turns, item)
