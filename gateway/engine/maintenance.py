"""A node says that it will be away on purpose: from when, until when, and why.

Its operator says so, a signal tells every node, and each keeps an incident of it, open until the operator
says that it is over. It changes no route and no time limit: who waits is shown why, and incidents of
what is late meanwhile say so.

Source: ``maintenance`` in the payload of ``signal`` in ``docs/PROTOCOL.md``.
"""

import re
from typing import NamedTuple

from gateway.engine.effects import Told
from gateway.engine.inputs import Maintain
from gateway.engine.limits import ERROR_CHARS_MAX
from gateway.engine.tick import Tick
from outbox.envelope import EVERYONE, Event, MaintenanceNotice, Signal, encode_payload
from outbox.errors import InvalidEvent
from outbox.ids import NodeId
from outbox.kinds import Kind
from outbox.records import Incident
from outbox.timestamps import parse_rfc3339, rfc3339

MAINTENANCE = "maintenance"
"""Signal, and kind of the incident; its subject is the node."""

DURING = ", during maintenance of "
"""Before the name of a node, at the end of an incident's detail."""

_UNTIL = re.compile(r"until (\S+Z)(?:: |\Z)", re.ASCII)


class Announced(NamedTuple):
    """What a node has said of its maintenance."""

    since_ms: int
    until_ms: int | None
    """None: until it says that it is over."""
    detail: str
    """In words."""


def maintain(tick: Tick, request: Maintain) -> Told:
    """Append the signal for every node. Raises InvalidEvent; then nothing was."""
    notice = request.notice
    if notice.until is not None and parse_rfc3339(notice.until) <= tick.now.wall_ms and not notice.over:
        raise InvalidEvent("maintenance ends in the future", hint="leave the time out if you do not know it")
    if len(notice.reason) > ERROR_CHARS_MAX // 2:
        raise InvalidEvent(f"a reason has at most {ERROR_CHARS_MAX // 2} characters")
    event = Event(
        event_id=tick.entropy.event_id(tick.now.wall_ms),
        kind=Kind.SIGNAL,
        source_node_id=tick.identity.node,
        created_at=tick.stamp,
        payload=encode_payload(Signal(signal=MAINTENANCE, maintenance=notice)),
    )
    tick.emit(event, EVERYONE)
    return Told(request.req, event.event_id, duplicate=False)


def hear_maintenance(tick: Tick, source: NodeId, notice: MaintenanceNotice) -> None:
    """Keep what a node says of itself; what it says later stands in place of it. Raises InvalidEvent."""
    detail = _words(notice)
    known = tick.store.incident(MAINTENANCE, source)
    if notice.over or (known is not None and known.detail != detail):
        tick.close_incident(MAINTENANCE, source)
    if not notice.over:
        tick.open_incident(MAINTENANCE, source, detail)


def _words(notice: MaintenanceNotice) -> str:
    until = "until it says that it is over"
    if notice.until is not None:
        until = f"until {rfc3339(parse_rfc3339(notice.until))}"
    return (f"{until}: {notice.reason}" if notice.reason else until)[:ERROR_CHARS_MAX]


def announced(row: Incident) -> Announced:
    """What an incident of this kind says."""
    found = _UNTIL.match(row.detail)
    return Announced(row.opened_at_ms, parse_rfc3339(found[1]) if found else None, row.detail)


def is_away(said: Announced | None, now_ms: int) -> bool:
    """Whether a node has announced that it may be away now."""
    return said is not None and (said.until_ms is None or now_ms < said.until_ms)


def meanwhile(tick: Tick, *nodes: NodeId | None) -> str:
    """What an incident that opens now adds to its detail: whose maintenance it may come of, if anybody's."""
    for node in nodes:
        row = tick.store.incident(MAINTENANCE, node) if node is not None else None
        if row is not None and row.closed_at_ms is None and is_away(announced(row), tick.now.wall_ms):
            return f"{DURING}{node}"
    return ""
