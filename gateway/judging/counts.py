"""How the messages of a run fared, in numbers."""

from collections import Counter
from collections.abc import Collection, Iterable

import msgspec

from gateway.judging.faults import Fault, FaultKind
from gateway.judging.losses import NOTHING, Losses
from gateway.judging.witness import Account
from outbox.kinds import Kind, Outcome
from outbox.records import Delivery, DeliveryState


class Counts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Replies are messages too: they are sent and accepted, but not processed."""

    sent: int
    """Messages and replies that a gateway took."""
    accepted: int
    processed: int
    replied: int
    failed: int
    refused: int
    """Sends that a gateway did not take."""
    dead_lettered: int
    waiting: int
    """Accepted and never processed, with an open incident that says so."""
    lost: int
    forgotten: int
    """Sends that a gateway took and forgot when its node was put back, or its copy stopped; others may have
    read them before."""
    gone: int
    """Of these the ones that nobody had read: lost by that."""
    dealt_again: int
    """Turns whose end a node forgot, and which it dealt once more."""
    engaged_twice: int
    resumed: int
    """Turns handed to the same session again after a crash, unacknowledged: allowed."""
    redelivered: int
    """Turns handed over once more because a lease ran out or a turn was given back: allowed."""
    answered_twice: int
    """Sends whose answer was lost in a crash and which were asked again: sent once all the same."""


def count(
    rows: Collection[Delivery], account: Account, faults: Iterable[Fault], losses: Losses = NOTHING
) -> Counts:
    """Of all delivery rows of a mesh, what its agents saw, what was given up, and what was found wrong."""
    by_kind = Counter(fault.kind for fault in faults)
    seen = account.sightings
    return Counts(
        sent=len(rows),
        accepted=sum(row.accepted_at_ms is not None for row in rows),
        processed=sum(row.processed_at_ms is not None and row.outcome is Outcome.OK for row in rows),
        replied=sum(row.replied_at_ms is not None for row in rows),
        failed=sum(row.outcome is Outcome.FAILED for row in rows),
        refused=len(account.refusals),
        dead_lettered=sum(row.state is DeliveryState.DEAD_LETTER for row in rows),
        waiting=sum(row.kind == Kind.MESSAGE and row.state is DeliveryState.ACCEPTED for row in rows),
        lost=by_kind[FaultKind.LOST] + by_kind[FaultKind.NOT_IN_OUTBOX],
        forgotten=len(losses.forgotten),
        gone=len(losses.gone),
        dealt_again=losses.dealt_again,
        engaged_twice=by_kind[FaultKind.ENGAGED_TWICE],
        resumed=sum(turn.resumed for turn in seen),
        redelivered=sum(turn.delivery_count > 1 and not turn.resumed for turn in seen),
        answered_twice=sum(promise.repeated for promise in account.promises),
    )
