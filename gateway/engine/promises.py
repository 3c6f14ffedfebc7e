"""When an agent expects to be done, and with what: said while it works, in another ``ack:accepted``.

The sender keeps the latest one in its row. It changes no state and no time limit: what an agent expects is
its own word, and the sender's patience is the sender's.

Source: ``etaAt`` and ``planSummary`` in the payload of ``ack`` in ``docs/PROTOCOL.md``.
"""

from gateway.engine.acks import cut, is_awaited, tell
from gateway.engine.inputs import Extend
from gateway.engine.limits import ERROR_CHARS_MAX
from gateway.engine.tick import Tick
from outbox.envelope import Ack, decode_event, decode_header, decode_payload
from outbox.errors import InvalidEvent
from outbox.kinds import AckStatus, Kind
from outbox.readership import names
from outbox.records import Received
from outbox.timestamps import parse_rfc3339, rfc3339


def check_promise(request: Extend) -> None:
    """Raises InvalidEvent."""
    if request.eta_at is not None:
        parse_rfc3339(request.eta_at)
    if request.plan_summary is not None and not 0 < len(request.plan_summary) <= ERROR_CHARS_MAX:
        raise InvalidEvent(f"a plan has 1 to {ERROR_CHARS_MAX} characters", hint="say it in a line or two")


def say_promise(tick: Tick, row: Received, request: Extend) -> None:
    """Tell the sender what the agent expects now, in place of what it said before.

    The same again is not told; nor is anybody told of a turn whose end nobody waits for.
    """
    if request.eta_at is None and request.plan_summary is None:
        return
    eta_at = None if request.eta_at is None else rfc3339(parse_rfc3339(request.eta_at))
    ack = Ack(ref=row.event_id, status=AckStatus.ACCEPTED, eta_at=eta_at, plan_summary=request.plan_summary)
    if is_awaited(row) and ack != _latest(tick, row):
        tell(tick, row.source, ack)


def _latest(tick: Tick, row: Received) -> Ack | None:
    latest = None
    for entry in tick.store.events_about(row.event_id):
        event = decode_event(entry.body)
        if event.kind == Kind.ACK and names(decode_header(entry.header), row.source):
            ack = decode_payload(event, Ack)
            latest = ack if ack.promises else latest
    return latest


def promised(ack: Ack) -> dict[str, object]:
    """What an ACK promises, as its obligation keeps it; one that promises nothing takes nothing back.

    Raises InvalidEvent when ``etaAt`` is no time.
    """
    if not ack.promises:
        return {}
    eta_at_ms = parse_rfc3339(ack.eta_at) if ack.eta_at is not None else None
    return {"eta_at_ms": eta_at_ms, "plan_summary": cut(ack.plan_summary)}
