"""Incidents that tell of what has happened, and that nothing which may yet happen here would end.

A disk that is full, a reader that is away, a message that nobody accepts: such incidents end with their
reason, and nobody else may end them. A turn that failed stays failed. These stay open until an operator has
seen enough of them, or until they are as old as what the outbox keeps; and of one kind only so many, since an
admitted node that lies can cause as many as it likes. The oldest go first.
"""

from collections.abc import Iterable

from gateway.engine import deliveries, epochs, forks, letters, signals, streams, turns
from gateway.engine.closing import CloseIncidents
from gateway.engine.doubts import POSSIBLE_DUPLICATE
from gateway.engine.effects import IncidentsClosed
from gateway.engine.limits import INCIDENTS_AT_ONCE, INCIDENTS_OPEN_MAX
from gateway.engine.receiver import QUARANTINED
from gateway.engine.tick import Tick
from outbox.errors import NotFound
from outbox.records import Incident

PAST = frozenset(
    {
        letters.ANSWERED_AFTER_DEAD,
        deliveries.DUPLICATE,
        deliveries.TURN_FAILED,
        epochs.COPY_RUNS,
        epochs.OWN_FORK,
        epochs.STREAM_EPOCH,
        forks.RECREATED,
        signals.REPORTED,
        streams.HISTORY_MISSED,
        streams.RELAY_TAMPERED,
        turns.FOREIGN_AGENT,
        POSSIBLE_DUPLICATE,
        QUARANTINED,
    }
)
"""An operator may close these."""

FORGOTTEN = PAST | {letters.DEAD}
"""These grow old. A dead letter is taken from its own list, for as long as the outbox has it."""


def close(tick: Tick, request: CloseIncidents) -> IncidentsClosed:
    """Close what the operator names, a bounded number. Raises NotFound when a named one cannot be closed."""
    before_ms = request.before_ms if request.before_ms is not None else tick.now.wall_ms + 1
    kinds = PAST if request.kind is None else PAST & {request.kind}
    if request.subjects:
        rows = [row for subject in request.subjects for row in _about(tick, subject, kinds)]
        rows = [row for row in rows if row.opened_at_ms < before_ms]
    else:
        rows = tick.store.open_incidents(kinds, before_ms, INCIDENTS_AT_ONCE)
    _close(tick, rows)
    return IncidentsClosed(request.req, len(rows))


def grow_old(tick: Tick, age_ms: int) -> bool:
    """Close those that are older than what the outbox keeps, and the oldest of too many; whether more are."""
    old = tick.store.open_incidents(FORGOTTEN, tick.now.wall_ms - age_ms, INCIDENTS_AT_ONCE)
    _close(tick, old)
    found = len(old)
    for kind, count in tick.store.count_open_incidents().items():
        too_many = min(count - INCIDENTS_OPEN_MAX, INCIDENTS_AT_ONCE)
        if kind in FORGOTTEN and too_many > 0:
            _close(tick, tick.store.open_incidents({kind}, tick.now.wall_ms + 1, too_many))
            found = max(found, too_many)
    return found == INCIDENTS_AT_ONCE


def _close(tick: Tick, rows: Iterable[Incident]) -> None:
    for row in rows:
        tick.close_incident(row.kind, row.subject)


def _about(tick: Tick, subject: str, kinds: Iterable[str]) -> list[Incident]:
    found = [tick.store.incident(kind, subject) for kind in sorted(kinds)]
    rows = [row for row in found if row is not None and row.closed_at_ms is None]
    if not rows:
        hint = "others end with their reason, and dead letters with: gateway dead prune"
        raise NotFound(f"no open incident about {subject} is an operator's to close", hint=hint)
    return rows
