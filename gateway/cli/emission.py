"""Tells the mesh what a report found: each incident once, and once more when it is over.

What is open here already is not told again, and what a crash left half told is: the gateway remembers each
incident's id, so the worst that can happen is that it is asked twice.
"""

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from gateway.cli.limits import DETAIL_CHARS_MAX
from gateway.client import GatewayClient
from gateway.client.agent import AgentClient
from gateway.engine.signals import ID_MAX
from gateway.home import Home
from outbox.ids import agent_id
from outbox.timestamps import rfc3339
from spark.summary import IncidentLine


class Emitted(msgspec.Struct, frozen=True):
    """How many incidents were told for the first time."""

    opened: int
    closed: int


async def emit(home: Home, agent: str, lines: Iterable[IncidentLine]) -> Emitted:
    """Tell of those that are open and not known here, and of the end of those that are known and over.

    Raises HomeError (no such agent), Unreachable, Denied.
    """
    name = agent_id(agent)
    async with GatewayClient.of_home(home) as operator, GatewayClient.of_home(home, name) as speaker:
        node = (await operator.status()).node
        known = {row.subject for row in await operator.incidents() if row.kind == "reported"}
        opened = closed = 0
        for line in lines:
            is_known = f"{node}/{notice_id(line)}" in known
            if line.closed_at_ms is None and not is_known:
                opened += await _tell(speaker.agent(name), line)
            elif line.closed_at_ms is not None and is_known:
                closed += await _tell(speaker.agent(name), line)
    return Emitted(opened, closed)


async def _tell(speaker: AgentClient, line: IncidentLine) -> bool:
    told = await speaker.tell_incident(
        notice_id(line),
        line.name,
        line.severity,
        opened_at=_time(line.opened_at_ms),
        closed_at=_time(line.closed_at_ms),
        ref=line.root_id,
        detail=_detail(line)[:DETAIL_CHARS_MAX],
    )
    return not told.duplicate


def _detail(line: IncidentLine) -> str:
    away = f"during maintenance of {' and '.join(line.maintenance_of)}" if line.maintenance_of else ""
    return "; ".join(filter(None, (away, line.detail)))


def notice_id(line: IncidentLine) -> str:
    """The incident's id, or where that is too long for a key one that follows from it."""
    if len(line.incident_id) <= ID_MAX:
        return line.incident_id
    return f"{line.name}:{sha256(line.incident_id.encode()).hexdigest()[:32]}"


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else rfc3339(at_ms)
