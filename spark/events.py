"""Event rows as statements about messages: one narrow row for each thing that an event says of a *root*.

A root is an event that somebody must acknowledge: a message, a reply, a task and each of its steps. Most
events say more than one thing: a message says that it exists and to which node it was routed, a reply says
besides that its parent was answered. ``role`` names what is said, ``node`` of whom: the node that an event
was routed to, else the node that speaks. Later steps look at roles, never at kinds.

Columns that a role has no use for are null, so that little travels when statements are exchanged.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

from outbox.kinds import RULES, AckStatus, Kind, Outcome
from spark.schema import DISTRUSTED, Flag
from spark.tasks import STEPS, TaskKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Role(IntEnum):
    """What a row says about its root; one byte, since there are millions of them."""

    ROOT = 0
    """The event itself, one row an attempt; ``node`` is its sender's."""
    ROUTED = 1
    """An attempt went to ``node``."""
    SENT = 2
    """Both at once: it went to ``node`` and to no other. Most do, and have one side instead of two."""
    ACCEPTED = 3
    PROCESSED = 4
    REFUSED = 5
    REPLIED = 6
    DEAD = 7
    TASK_ACCEPTED = 8
    TASK_UPDATED = 9
    TASK_COMPLETED = 10
    TASK_FAILED = 11
    ADDRESSED = 12
    """As ``ROUTED``, of an event to several agents: each node that it goes to is a delivery of its own."""
    BURIED = 13
    """A dead letter says of which node it gives up; ``by`` is who says so."""


ROOTS = (Role.ROOT, Role.SENT)
"""Where a root speaks of itself."""

ADDRESSES = (Role.ROUTED, Role.SENT, Role.ADDRESSED)
"""Where an event went."""

ANSWERS = (
    Role.REPLIED,
    Role.TASK_ACCEPTED,
    Role.TASK_UPDATED,
    Role.TASK_COMPLETED,
    Role.TASK_FAILED,
)
"""What an agent says in answer."""

ROOT_KINDS: tuple[str, ...] = (
    *(kind for kind, rule in RULES.items() if rule.accepted),
    *TaskKind,
)
"""Kinds that somebody must acknowledge."""

_ANSWER_ROLES: dict[str, Role] = {
    Kind.REPLY: Role.REPLIED,
    TaskKind.ACCEPT: Role.TASK_ACCEPTED,
    TaskKind.UPDATE: Role.TASK_UPDATED,
    TaskKind.COMPLETE: Role.TASK_COMPLETED,
    TaskKind.FAILED: Role.TASK_FAILED,
}


def quoted(names: Iterable[str]) -> str:
    """Names as a list of SQL strings."""
    return ", ".join("'" + name.replace("'", "''") + "'" for name in names)


ROLE_OF = f"""
case
    when kind = '{Kind.DEAD_LETTER}' then {Role.DEAD:d}
    when kind = '{Kind.ACK}' and outcome = '{Outcome.REFUSED}' then {Role.REFUSED:d}
    when kind = '{Kind.ACK}' and status = '{AckStatus.PROCESSED}' then {Role.PROCESSED:d}
    when kind = '{Kind.ACK}' then {Role.ACCEPTED:d}
end
"""
"""What an event that is no root says of ``rootId``. A refusal counts as such on either level."""

_LIES = quoted(DISTRUSTED)

TRUSTED = f"(flags is null or not arrays_overlap(split(flags, ','), array({_LIES})))"
"""Rows that may say anything at all."""

TIME = f"case when flags is null or find_in_set('{Flag.CREATED_AT}', flags) = 0 then createdAt end"
"""When an event was made; null for a clock that lies."""


def statements(events: "DataFrame", nodes: Iterable[str]) -> "DataFrame":
    """``rootId, node, role, at, place, root`` and what answers say; ``at`` is null for a clock that lies.

    ``nodes`` are those that a broadcast is routed to: all that can have answered it. Signals, unknown kinds
    and rows that cannot be trusted say nothing and are left out.
    """
    said = events.where(TRUSTED).selectExpr("* except (toNodes)", "coalesce(toNodes, '') as toNodes")
    said = said.selectExpr(_said(nodes), f"{TIME} as at", *_KEPT)
    return said.where("rootId is not null and node is not null").selectExpr(*_COLUMNS)


def _said(nodes: Iterable[str]) -> str:
    root = _struct("rootId", "sourceNodeId", Role.ROOT)
    sent = _struct("rootId", "toNodes", Role.SENT)
    answered = "named_struct('rootId', corrId, 'node', sourceNodeId, 'role', case kind {} end)".format(
        " ".join(f"when '{kind}' then {role:d}Y" for kind, role in _ANSWER_ROLES.items())
    )
    one = f"'{Kind.REPLY}', {quoted(STEPS)}"
    everyone = f"array({quoted(sorted(nodes))})"
    many = (
        f"transform(case when toNodes = '*' then {everyone} else split(toNodes, ',') end,"
        f" n -> {_struct('rootId', 'n', Role.ROUTED)})"
    )
    each = f"transform(split(toNodes, ','), n -> {_struct('rootId', 'n', Role.ADDRESSED)})"
    single = "toNodes <> '*' and instr(toNodes, ',') = 0"
    return f"""
inline(case
    when {_TO_SEVERAL} then concat(array({root}), {each})
    when kind in ({quoted(ROOT_KINDS)}) then case
        when {single} and kind in ({one}) then array({sent}, {answered})
        when {single} then array({sent})
        when kind in ({one}) then concat(array({root}, {answered}), {many})
        else concat(array({root}), {many}) end
    when kind = '{Kind.DEAD_LETTER}' and {single} then array(
        {_struct("rootId", "sourceNodeId", Role.DEAD)}, {_struct("rootId", "toNodes", Role.BURIED)})
    when kind in ('{Kind.ACK}', '{Kind.DEAD_LETTER}') then
        array(named_struct('rootId', rootId, 'node', sourceNodeId, 'role', cast({ROLE_OF} as tinyint)))
end)
"""


_TO_SEVERAL = f"kind = '{Kind.MESSAGE}' and toAgentId is null and toNodes not in ('', '*')"
"""A message that names no single agent. Who was meant by ``*`` the row does not say."""


def _struct(root: str, node: str, role: Role) -> str:
    return f"named_struct('rootId', {root}, 'node', {node}, 'role', {role:d}Y)"


_KEPT = (
    "sourceNodeId", "epoch", "seq", "kind", "attempt", "sourceAgentId", "toAgentId", "toNodes", "corrId",
    "threadId", "expiresAt", "priority", "type", "hops", "outcome", "error", "reason", "attempts",
    "engagedAt", "deliveries", "etaAt", "capabilityId", "version", "skillVersion", "acceptWithinMs",
    "completeWithinMs", "errorClass",
)  # fmt: skip

ROOT: dict[str, str] = {
    "attempt": "attempt",
    "toNodes": "toNodes",
    "kind": "kind",
    "fromNode": "sourceNodeId",
    "fromAgent": "sourceAgentId",
    "toAgent": "toAgentId",
    "parentId": "corrId",
    "threadId": "threadId",
    "type": "type",
    "capabilityId": "capabilityId",
    "priority": "priority",
    "hops": "hops",
    "expiresAt": "expiresAt",
    "acceptWithinMs": "acceptWithinMs",
    "completeWithinMs": "completeWithinMs",
    "requestedVersion": f"case when kind = '{TaskKind.CREATE}' then version end",
    "delegationVersion": f"case when kind = '{TaskKind.CREATE}' then skillVersion end",
}
"""What a root says of itself: one value, the attempt first, so that the greatest is the last attempt's."""

PLACE = "named_struct('node', sourceNodeId, 'epoch', epoch, 'seq', seq)"
"""Where an event lies: the evidence of what it says."""

_OF_ANSWER = (
    "outcome", "error", "reason", "attempts", "engagedAt", "deliveries", "etaAt", "errorClass", "version",
    "skillVersion",
)  # fmt: skip
"""What only answers carry on. A step of a task is a root too: its row as a root says nothing of its task."""


def struct(fields: Mapping[str, str]) -> str:
    """A SQL expression for one value of several: name → expression."""
    parts = (f"'{name}', {value}" for name, value in fields.items())
    return f"named_struct({', '.join(parts)})"


def _only(roles: str, value: str, name: str) -> str:
    return f"case when role {roles} then {value} end as {name}"


_UNPLACED = f"not in ({Role.ROUTED:d}, {Role.ADDRESSED:d}, {Role.BURIED:d})"

_COLUMNS = (
    "rootId", "node", "role",
    _only(f"<> {Role.ROUTED:d}", "at", "at"),
    _only(_UNPLACED, PLACE, "place"),
    _only(f"in ({Role.ROOT:d}, {Role.SENT:d})", struct(ROOT), "root"),
    *(_only(f"> {Role.SENT:d}", name, name) for name in _OF_ANSWER),
    _only(f"= {Role.ADDRESSED:d}", "attempt", "attempt"),
    _only(f"= {Role.BURIED:d}", "sourceNodeId", "by"),
)  # fmt: skip
