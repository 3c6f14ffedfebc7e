"""The sender's side of one delivery: which input moves it where.

Every deliverable event of the own outbox has a row that is in exactly one state. Inputs come from the other
node's outbox (ACKs, refusals, replies), from the sender's timers (expiry, SLA) and from the sender's own
appends (a retry). An event begins in ``emitted`` and moves until no step leads out of its state: it was
processed, it was replied to, or it is a dead letter that both sides can see. A step that is not in the table
changes nothing: what came (a second ACK, an ACK after the dead letter) is recorded by the caller, no more.

The row is that of one node. An attempt that goes elsewhere leaves it ``superseded``: what its node still says
is recorded there, and the row of the other node carries the obligation on.

Three rules are not visible in the table. ``LOST`` may only be said when the owner has published a cursor
past the event and its stream was read to the head published with that cursor: silence alone proves nothing.
``REFUSED`` is looked at before ``ACK_PROCESSED``, since a refusal travels as ``processed`` with outcome
``refused``; that of an accepted event is final, since its row there has ended. ``EXPIRED`` of an accepted
event is said only after a day of silence past ``expiresAt``, since the receiver itself ends an expired turn
and says so.

Source: the sender's delivery in ``docs/PROTOCOL.md``.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache

from outbox.kinds import RULES, Kind
from outbox.limits import NAMES_REMEMBERED
from outbox.records import Delivery, DeliveryState

INBOX_FULL = "inbox_full"
"""The refusal that passes: there is no room now."""

SEVERAL = "*:,"
"""Marks of addresses that mean more than one agent; no name holds one."""


class Input(StrEnum):
    """What can happen to a delivery."""

    ACK_ACCEPTED = "ack_accepted"
    ACK_PROCESSED = "ack_processed"
    """``processed`` with outcome ok or failed."""
    REPLY = "reply"
    LOST = "lost"
    """The ACK timed out and the event was provably not accepted."""
    REFUSED_NOT_OWNER = "refused_not_owner"
    """The node that got it does not own the agent: route it anew."""
    REFUSED_FULL = "refused_full"
    """There is no room for it now: ask again, less and less often, which burns no attempt."""
    REFUSED = "refused"
    """Refused for another reason, or there is nobody to route it to."""
    EXPIRED = "expired"
    EXHAUSTED = "exhausted"
    """The last attempt that the policy allows has failed."""
    RETRIED = "retried"
    """The next attempt is in the outbox."""
    REROUTED = "rerouted"
    """The next attempt went to another node."""
    ACCEPTANCE_LOST = "acceptance_lost"
    """The node was restored to a state in which it had not accepted the event."""
    SLA_BREACH = "sla_breach"
    """Accepted, but not processed in time: an incident is opened, the obligation stays."""


_S = DeliveryState
_I = Input

_SUPERSEDED = DeliveryState.SUPERSEDED
"""By name, as every answer asks: before Python 3.12 a member of an enum is slow to look up."""

STEPS: dict[tuple[DeliveryState, Input], DeliveryState] = {
    (_S.EMITTED, _I.ACK_ACCEPTED): _S.ACCEPTED,
    (_S.EMITTED, _I.ACK_PROCESSED): _S.PROCESSED,
    (_S.EMITTED, _I.REPLY): _S.REPLIED,
    (_S.EMITTED, _I.LOST): _S.RETRY_PENDING,
    (_S.EMITTED, _I.REFUSED_NOT_OWNER): _S.RETRY_PENDING,
    (_S.EMITTED, _I.REFUSED_FULL): _S.RETRY_PENDING,
    (_S.EMITTED, _I.REFUSED): _S.DEAD_LETTER,
    (_S.EMITTED, _I.EXPIRED): _S.DEAD_LETTER,
    (_S.EMITTED, _I.REROUTED): _S.SUPERSEDED,
    (_S.RETRY_PENDING, _I.RETRIED): _S.EMITTED,
    (_S.RETRY_PENDING, _I.REROUTED): _S.SUPERSEDED,
    (_S.RETRY_PENDING, _I.ACK_ACCEPTED): _S.ACCEPTED,
    (_S.RETRY_PENDING, _I.ACK_PROCESSED): _S.PROCESSED,
    (_S.RETRY_PENDING, _I.REPLY): _S.REPLIED,
    (_S.RETRY_PENDING, _I.REFUSED_NOT_OWNER): _S.RETRY_PENDING,
    (_S.RETRY_PENDING, _I.REFUSED_FULL): _S.RETRY_PENDING,
    (_S.RETRY_PENDING, _I.REFUSED): _S.DEAD_LETTER,
    (_S.RETRY_PENDING, _I.EXPIRED): _S.DEAD_LETTER,
    (_S.RETRY_PENDING, _I.EXHAUSTED): _S.DEAD_LETTER,
    (_S.ACCEPTED, _I.ACK_PROCESSED): _S.PROCESSED,
    (_S.ACCEPTED, _I.REPLY): _S.REPLIED,
    (_S.ACCEPTED, _I.SLA_BREACH): _S.ACCEPTED,
    (_S.ACCEPTED, _I.ACCEPTANCE_LOST): _S.RETRY_PENDING,
    (_S.ACCEPTED, _I.REFUSED_NOT_OWNER): _S.RETRY_PENDING,
    (_S.ACCEPTED, _I.REFUSED_FULL): _S.DEAD_LETTER,
    (_S.ACCEPTED, _I.REFUSED): _S.DEAD_LETTER,
    (_S.ACCEPTED, _I.EXPIRED): _S.DEAD_LETTER,
    (_S.SUPERSEDED, _I.RETRIED): _S.EMITTED,
    (_S.PROCESSED, _I.REPLY): _S.PROCESSED,
    (_S.REPLIED, _I.ACK_PROCESSED): _S.REPLIED,
}

FINAL: frozenset[DeliveryState] = frozenset(
    state
    for state in DeliveryState
    if all(after is state for (before, _), after in STEPS.items() if before is state)
)
"""The states that no step leads out of."""


def step(state: DeliveryState, what: Input) -> DeliveryState | None:
    """The next state, or None when the input is to be recorded but changes nothing."""
    return STEPS.get((state, what))


def is_final(state: DeliveryState) -> bool:
    """Whether no step leads out of it."""
    return state in FINAL


def settled(kind: Kind, state: DeliveryState) -> bool:
    """Whether nothing is owed any more: kinds without ``processed`` (a reply) are done once accepted.

    What was superseded is owed by the attempt that came after it.
    """
    if state is DeliveryState.SUPERSEDED:
        return True
    return is_final(state) or (state is DeliveryState.ACCEPTED and not RULES[kind].processed)


def is_for_several(row: Delivery) -> bool:
    """Whether the event has more than one recipient: an address that is no agent's name."""
    return _means_several(row.to_agent)


@lru_cache(NAMES_REMEMBERED)
def _means_several(address: str) -> bool:
    return any(mark in address for mark in SEVERAL)


def was_asked_alone(row: Delivery) -> bool:
    """Whether no other node was ever asked for the event of this row."""
    return row.attempt == 1 and row.tries == 1 and row.state is not _SUPERSEDED


def standing(rows: Sequence[Delivery]) -> Delivery | None:
    """Of all rows of one event the one to show: the least advanced, but for those that were superseded."""
    live = [row for row in rows if row.state is not DeliveryState.SUPERSEDED] or rows
    return min(live, key=lambda row: (_PROGRESS[row.state], -row.attempt), default=None)


_PROGRESS = {
    state: rank
    for rank, state in enumerate(
        (_S.SUPERSEDED, _S.EMITTED, _S.RETRY_PENDING, _S.DEAD_LETTER, _S.ACCEPTED, _S.PROCESSED, _S.REPLIED)
    )
}


def diagram() -> str:
    """The table as a mermaid state diagram, for the documentation."""
    arrows: dict[tuple[DeliveryState, DeliveryState], list[Input]] = {}
    for (before, what), after in STEPS.items():
        arrows.setdefault((before, after), []).append(what)
    lines = [f"    {before} --> {after}: {', '.join(inputs)}" for (before, after), inputs in arrows.items()]
    ends = [f"    {state} --> [*]" for state in DeliveryState if is_final(state)]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {DeliveryState.EMITTED}", *lines, *ends]) + "\n"
