"""What agents say about events of their inboxes: done, not done, not yet, and replies."""

from gateway.courier.errors import UnknownLease
from gateway.engine import sender
from gateway.engine.effects import Extended, Sent, Settled
from gateway.engine.inputs import Extend, Nack, Reply, Settle
from gateway.engine.promises import check_promise, say_promise
from gateway.engine.tick import Tick
from gateway.engine.turns import Turns
from gateway.routing import inbox_stream
from outbox.envelope import decode_event
from outbox.errors import AmbiguousEvent, InvalidEvent, NotFound
from outbox.kinds import Outcome
from outbox.records import Received, TurnState


def settle(tick: Tick, turns: Turns, request: Settle) -> Settled:
    """End a turn. The same end twice is no error.

    Raises NotFound, AmbiguousEvent, InvalidEvent, UnknownLease.
    """
    row = _own(tick, request)
    if request.outcome is Outcome.REFUSED:
        raise InvalidEvent("a turn ends ok or failed; only a gateway refuses")
    if row.state is TurnState.DONE:
        if row.outcome is not request.outcome:
            raise UnknownLease(inbox_stream(row.to_agent), row.event_id)
        return Settled(request.req, row.event_id, duplicate=True)
    _check_lease(turns, row, request.lease_id)
    turns.finish(tick, row, request.outcome, request.error)
    return Settled(request.req, row.event_id, duplicate=False)


def reply(tick: Tick, turns: Turns, request: Reply, owner_epoch: int) -> Sent:
    """Answer an event; a turn that is still open is done with it, one that has ended stays as it ended.

    Raises NotFound, AmbiguousEvent, UnknownLease and what ``sender.reply`` raises; then nothing was changed.
    """
    row = _own(tick, request)
    if row.state is not TurnState.DONE:
        _check_lease(turns, row, request.lease_id)
    sent = sender.reply(tick, request, decode_event(row.body), owner_epoch)
    if row.state is not TurnState.DONE:
        turns.finish(tick, row, Outcome.OK, None)
    return sent


def nack(tick: Tick, turns: Turns, request: Nack) -> Settled:
    """Give a turn back. Raises NotFound, AmbiguousEvent, UnknownLease."""
    row = _own(tick, request)
    turns.give_back(tick, row, request.lease_id, request.delay_ms)
    return Settled(request.req, row.event_id, duplicate=False)


def extend(tick: Tick, turns: Turns, request: Extend) -> Extended:
    """Prolong a turn, and tell its sender what the agent expects, if it says so.

    Raises NotFound, AmbiguousEvent, UnknownLease, InvalidEvent; then nothing was changed.
    """
    check_promise(request)
    row = _own(tick, request)
    lease_ms = turns.prolong(tick, row, request.lease_id, request.lease_ms)
    say_promise(tick, row, request)
    return Extended(request.req, row.event_id, lease_ms)


def _own(tick: Tick, request: Settle | Reply | Nack | Extend) -> Received:
    """The agent's row of the event. Two nodes may have sent one under this id: then the lease tells which."""
    agent, event = request.agent, request.event_id
    rows = [row for row in tick.store.ledger(event) if row.to_agent == agent]
    if not rows:
        raise NotFound(f"{event} is not in the inbox of {agent}", hint="list it with: gateway inbox --all")
    if len(rows) == 1:
        return rows[0]
    engageable = [row for row in rows if _engageable(row)] or rows[:1]
    if len(engageable) == 1:
        return engageable[0]
    leased = [row for row in engageable if row.lease_id is not None and row.lease_id == request.lease_id]
    if len(leased) != 1:
        raise AmbiguousEvent(event, [row.source for row in engageable])
    return leased[0]


def _engageable(row: Received) -> bool:
    """Whether the agent has, had or will get it: what is held or was refused was never the agent's."""
    return row.state is not TurnState.HELD and row.outcome is not Outcome.REFUSED


def _check_lease(turns: Turns, row: Received, lease_id: str | None) -> None:
    """Whoever holds the turn may end it; if nobody does, whoever may read it."""
    if row.state is TurnState.HELD or turns.live_lease(row) != lease_id:
        raise UnknownLease(inbox_stream(row.to_agent), row.event_id)
