"""Event rows as statements about messages: one narrow row for each thing that an event says of a *root*.

A root is an event that somebody must acknowledge. Most events say one thing; a reply says two: that it
exists, and that its parent was answered. ``role`` names what is said: later steps never look at kinds again.
"""

from enum import StrEnum
from typing import TYPE_CHECKING

from outbox.kinds import RULES, AckStatus, Kind, Outcome
from spark.schema import DISTRUSTED, Flag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Role(StrEnum):
    """What a row says about its root."""

    ROOT = "root"
    """The event itself, one row an attempt."""
    ACCEPTED = "accepted"
    PROCESSED = "processed"
    REFUSED = "refused"
    REPLIED = "replied"
    DEAD = "dead"


def _kinds(kinds: list[Kind]) -> str:
    return ", ".join(f"'{kind}'" for kind in kinds)


_ROOT_KINDS = _kinds([kind for kind, rule in RULES.items() if rule.accepted])

ROLE_OF = f"""
case
    when kind in ({_ROOT_KINDS}) then '{Role.ROOT}'
    when kind = '{Kind.DEAD_LETTER}' then '{Role.DEAD}'
    when kind = '{Kind.ACK}' and outcome = '{Outcome.REFUSED}' then '{Role.REFUSED}'
    when kind = '{Kind.ACK}' and status = '{AckStatus.PROCESSED}' then '{Role.PROCESSED}'
    when kind = '{Kind.ACK}' then '{Role.ACCEPTED}'
end
"""
"""What an event says of ``rootId``. A refusal counts as such on either level."""

_LIES = ", ".join(f"'{flag}'" for flag in DISTRUSTED)

TRUSTED = f"(flags is null or not arrays_overlap(split(flags, ','), array({_LIES})))"
"""Rows that may say anything at all."""

_TIME = f"case when find_in_set('{Flag.CREATED_AT}', coalesce(flags, '')) = 0 then createdAt end"

_SAID = f"""
inline(case
    when kind = '{Kind.REPLY}' then array(
        named_struct('rootId', rootId, 'role', '{Role.ROOT}'),
        named_struct('rootId', corrId, 'role', '{Role.REPLIED}'))
    else array(named_struct('rootId', rootId, 'role', {ROLE_OF}))
end)
"""

_KEPT = (
    "sourceNodeId", "epoch", "seq", "kind", "attempt", "sourceAgentId", "toAgentId", "toNodes", "corrId",
    "threadId", "expiresAt", "priority", "type", "outcome", "error", "reason", "attempts", "engagedAt",
    "deliveries",
)  # fmt: skip


def statements(events: "DataFrame") -> "DataFrame":
    """``rootId, role, at`` and what later steps read; ``at`` is null when the clock was not credible.

    Signals, unknown kinds and rows that cannot be trusted say nothing and are left out.
    """
    said = events.where(TRUSTED).selectExpr(_SAID, f"{_TIME} as at", *_KEPT)
    return said.where("role is not null and rootId is not null")
