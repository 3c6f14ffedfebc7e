"""What an operator asks for that is no agent's turn: each input to the module that knows it."""

from gateway.engine import leaving, newcomers, pastincidents, recall, redrive
from gateway.engine.closing import CloseIncidents
from gateway.engine.deadletters import Dismiss, Redrive
from gateway.engine.doubts import EndDoubts
from gateway.engine.effects import Answer, agent_changed
from gateway.engine.inputs import AddAgent, Maintain, RemoveAgent, SetAgent
from gateway.engine.maintenance import maintain
from gateway.engine.residents import Residents
from gateway.engine.tick import Tick
from gateway.engine.turns import Turns

Change = AddAgent | SetAgent | RemoveAgent
Operation = Change | Redrive | Dismiss | EndDoubts | CloseIncidents | Maintain


def handle(tick: Tick, residents: Residents, turns: Turns, item: Operation) -> Answer:
    """Do it. Raises CallerError branches, as the modules say."""
    match item:
        case AddAgent() | SetAgent() | RemoveAgent():
            return _change_agent(tick, residents, turns, item)
        case Redrive() | Dismiss():
            return redrive.handle(tick, residents, item)
        case CloseIncidents():
            return pastincidents.close(tick, item)
        case Maintain():
            return maintain(tick, item)
        case _:
            return recall.release(tick, turns, item)


def _change_agent(tick: Tick, residents: Residents, turns: Turns, item: Change) -> Answer:
    match item:
        case AddAgent():
            row = residents.add(tick, item)
            newcomers.begin(tick, turns, row)
        case SetAgent():
            row = residents.change(tick, item)
        case _:
            row = residents.remove(tick, item.name)
            leaving.begin(tick, turns, row.name)
    return agent_changed(item.req, row, active=not isinstance(item, RemoveAgent))
