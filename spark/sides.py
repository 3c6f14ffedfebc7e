"""What each node said about each root: one row for a root and a node, its *side* of the delivery.

An answer counts only from a node that the root was routed to, and whether it was is known only when all that
was said of a root is together. So what is said is gathered by root *and* node first, and the sides of a root
are put together after (``spark.deliveries``). The exchange is by root alone: both steps find their rows where
they are, and the data travels once.

Every aggregate is idempotent: duplicates, retries, repeated pages and late events cannot change a result, and
two halves of a history can be gathered apart and then together (``merged``). So there is no join, no sorting
by time and no removal of duplicates.

Facts and their times are kept apart: a node whose clock was never set has still accepted the event.
"""

from typing import TYPE_CHECKING, NamedTuple

from spark.events import ANSWERS, ROOTS, Role

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Gathered(NamedTuple):
    """One aggregate: the ``how`` of ``value`` over the statements with one of these roles."""

    how: str
    roles: tuple[Role, ...]
    value: str


def _of(how: str, value: str, *roles: Role) -> Gathered:
    return Gathered(how, roles, value)


_TASK = (Role.TASK_ACCEPTED, Role.TASK_UPDATED, Role.TASK_COMPLETED, Role.TASK_FAILED)
_SPOKEN = tuple(role for role in Role if Role.SENT < role < Role.ADDRESSED)

GATHERED: dict[str, Gathered] = {
    "facts": _of("bit_or", "shiftleft(1, role)", *Role),
    "root": _of("max", "root", *ROOTS),
    "createdAt": _of("min", "at", *ROOTS),
    "first": _of("min", "place", *ROOTS),
    "acceptedAt": _of("min", "at", Role.ACCEPTED),
    "processedAt": _of("min", "at", Role.PROCESSED),
    "engagedAt": _of("min", "engagedAt", Role.PROCESSED),
    # "ok" sorts after "failed": a turn that succeeded anywhere has succeeded.
    "outcome": _of("max", "outcome", Role.PROCESSED),
    "error": _of("max", "error", Role.PROCESSED, Role.TASK_FAILED),
    "deliveries": _of("max", "deliveries", Role.PROCESSED),
    "repliedAt": _of("min", "at", Role.REPLIED),
    "refusal": _of("max", "error", Role.REFUSED),
    "missFirst": _of("min", "case when error = 'not_owner' then place end", Role.REFUSED),
    "missLast": _of("max", "case when error = 'not_owner' then place end", Role.REFUSED),
    "deadAt": _of("min", "at", Role.DEAD),
    "reason": _of("max", "coalesce(reason, error)", Role.DEAD),
    "deadAttempts": _of("max", "attempts", Role.DEAD),
    "timesAddressed": _of("max", "attempt", Role.ADDRESSED),
    "buriedByFirst": _of("min", "by", Role.BURIED),
    "buriedByLast": _of("max", "by", Role.BURIED),
    "buriedAt": _of("min", "at", Role.BURIED),
    "buriedReason": _of("max", "coalesce(reason, error)", Role.BURIED),
    "buriedAttempts": _of("max", "attempts", Role.BURIED),
    "etaFirst": _of("min", "etaAt", Role.ACCEPTED, *_TASK),
    "etaLast": _of("max", "etaAt", Role.ACCEPTED, *_TASK),
    "resolvedVersion": _of("max", "version", *_TASK),
    "executorVersion": _of("max", "skillVersion", *_TASK),
    "taskAcceptedAt": _of("min", "at", Role.TASK_ACCEPTED),
    "progressAt": _of("max", "at", Role.TASK_ACCEPTED, Role.TASK_UPDATED),
    "completedAt": _of("min", "at", Role.TASK_COMPLETED),
    "failedAt": _of("min", "at", Role.TASK_FAILED),
    "errorClass": _of("max", "errorClass", Role.TASK_FAILED),
    "answeredAt": _of("min", "at", *ANSWERS),
    "said": _of("max", "place", *_SPOKEN),
}
"""Column of a side → how it comes from statements."""


ROOT_HASH = "xxhash64(rootId) as rootHash"
SORTED_BY = ("rootHash", "rootId")
"""Roots lie together by a number first: sorting compares eight bytes, and ids begin with the same eight."""


def sides(statements: "DataFrame") -> "DataFrame":
    """``rootHash, rootId, node`` and what is ``GATHERED`` from statements: the one exchange of the job."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

    gathered = [F.expr(_aggregate(aggregate)).alias(name) for name, aggregate in GATHERED.items()]
    placed = statements.selectExpr("*", ROOT_HASH).repartition("rootHash")
    return placed.groupBy(*SORTED_BY, "node").agg(*gathered)


def _aggregate(gathered: Gathered) -> str:
    return f"{gathered.how}({_value(gathered)})"


def _value(gathered: Gathered) -> str:
    if len(gathered.roles) == len(Role):
        return gathered.value
    roles = ", ".join(f"{role:d}" for role in gathered.roles)
    return f"case when role in ({roles}) then {gathered.value} end"


def apart(statements: "DataFrame") -> "DataFrame":
    """Each statement as a side of its own: what ``merged`` makes of them is what ``sides`` makes."""
    values = (f"{_value(gathered)} as {name}" for name, gathered in GATHERED.items())
    return statements.selectExpr(ROOT_HASH, "rootId", "node", *values)


def merged(sides: "DataFrame", **more: str) -> "DataFrame":
    """One row for a root and a node from several, as if their statements had been gathered together.

    ``more`` are further columns, and how each is gathered.
    """
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

    how = {name: gathered.how for name, gathered in GATHERED.items()} | more
    again = [F.expr(f"{aggregate}({name})").alias(name) for name, aggregate in how.items()]
    return sides.repartition("rootHash").groupBy(*SORTED_BY, "node").agg(*again)


def said(*roles: Role, facts: str = "facts") -> str:
    """A SQL condition: one of these was said."""
    mask = sum(1 << role for role in roles)
    return f"({facts} & {mask}) <> 0"
