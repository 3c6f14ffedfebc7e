"""Incidents of a report, as agents tell them: often again, as after a crash, and most are over soon."""

from collections.abc import Iterator

import msgspec

from gateway.engine.effects import Told
from gateway.engine.inputs import TellIncident
from gateway.errors import Busy, Denied
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.gateway import SimGateway
from outbox.envelope import IncidentNotice
from outbox.ids import AgentId
from outbox.timestamps import rfc3339
from spark.rules import IncidentClass

_OPENED_MS = 1_780_000_000_000
_AGAIN_S = (0, 30)
_OVER_AFTER_S = (5, 90)
_NOTICES_A_MINUTE = 2


class Notice(msgspec.Struct, frozen=True):
    """What an agent wants to tell."""

    id: str
    over: bool = False


def draw_notices(seed: int, minutes: int, agents: int) -> Iterator[tuple[float, int, Notice]]:
    """When, by which of so many agents, what. Of one incident everything is said by one agent, in order."""
    dice = Dice(seed, "reports")
    for number in range(_NOTICES_A_MINUTE * minutes):
        notice = Notice(f"{dice.among(tuple(IncidentClass))}:{number}")
        teller, at_s = dice.between(0, agents - 1), 5 + dice.fraction() * (minutes * 60 - 150)
        yield at_s, teller, notice
        if dice.chance(0.5):
            yield at_s + dice.between(*_AGAIN_S), teller, notice
        if dice.chance(0.6):
            over_s = at_s + _AGAIN_S[1] + dice.between(*_OVER_AFTER_S)
            yield over_s, teller, Notice(notice.id, over=True)
            if dice.chance(0.5):
                yield over_s + dice.between(*_AGAIN_S), teller, Notice(notice.id, over=True)


async def tell(gateway: SimGateway, agent: AgentId, notice: Notice) -> Told | None:
    """The answer; None while the disk is full or the agent was taken away."""
    told = IncidentNotice(
        id=notice.id,
        name=notice.id.split(":")[0],
        severity="major",
        opened_at=rfc3339(_OPENED_MS),
        closed_at=rfc3339(_OPENED_MS + 1) if notice.over else None,
    )
    try:
        answer = await gateway.runtime.ask(TellIncident(req=gateway.runtime.req(), agent=agent, notice=told))
    except (Busy, Denied):
        return None
    assert isinstance(answer, Told)
    return answer
