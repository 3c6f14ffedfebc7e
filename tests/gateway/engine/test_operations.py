"""Each of an operator's inputs reaches the module that knows it."""

from typing import Any

from gateway.engine.closing import CloseIncidents
from gateway.engine.deadletters import Dismiss, Redrive
from gateway.engine.doubts import DoubtsEnded, EndDoubts
from gateway.engine.effects import Dismissed, IncidentsClosed, Refused, Told
from gateway.engine.inputs import Maintain
from outbox.envelope import MaintenanceNotice


def test_each_is_answered_in_its_own_way(world: Any) -> None:
    answers = [
        world.ask("a", Redrive(req=1, event_id="evt_" + "0" * 32)),
        world.ask("a", Dismiss(req=2, event_ids=(), before_ms=1)),
        world.ask("a", EndDoubts(req=3)),
        world.ask("a", CloseIncidents(req=4)),
        world.ask("a", Maintain(req=5, notice=MaintenanceNotice())),
    ]
    assert [type(answer) for answer in answers] == [Refused, Dismissed, DoubtsEnded, IncidentsClosed, Told]
