"""When each node had announced that it would be away, and which incidents opened meanwhile.

A node's own signals say so, in the order of its outbox: each stands until the next one, or until the time
that it names. What opened while a node that was waited for was away as announced is an incident all the same:
it is counted with the others and, beside them, apart.
"""

from typing import TYPE_CHECKING

from outbox.kinds import Kind
from spark.events import PLACE, TIME, TRUSTED, quoted
from spark.incidents import COLUMNS as OF_INCIDENT
from spark.limits import MAINTENANCES_MAX
from spark.rules import RULES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OURS = "maintenanceOf"
"""The column of an incident that is filled in here."""

MAINTENANCE = "maintenance"
"""The signal."""

COLUMNS = ("node", "startAt", "endAt", "untilAt", "reason", "position")
"""A row for each time that was announced; ``endAt`` is null while nothing has ended it."""

WAITING = quoted(name for name, rule in RULES.items() if rule.waits)
"""Classes that can come of a node's being away."""

_ORDER = "epoch, seq"


def maintenances(events: "DataFrame") -> "DataFrame":
    """The table with ``COLUMNS``: the latest ``MAINTENANCES_MAX`` announcements of each node."""
    said = events.where(f"kind = '{Kind.SIGNAL}' and signal = '{MAINTENANCE}'").where(TRUSTED)
    known = said.selectExpr(
        "sourceNodeId as node", "epoch", "seq", f"{TIME} as startAt", "untilAt", "isOver", "reason",
        f"{PLACE} as place",
    ).where("startAt is not null")  # fmt: skip
    latest = known.selectExpr(
        "*", f"row_number() over (partition by node order by {_ORDER.replace(',', ' desc,')} desc) as nth"
    ).where(f"nth <= {MAINTENANCES_MAX}")
    following = f"lead(startAt) over (partition by node order by {_ORDER})"
    ended = latest.selectExpr("*", f"least(untilAt, {following}) as endAt")
    return ended.where("not coalesce(isOver, false) and (endAt is null or endAt > startAt)").selectExpr(
        *COLUMNS[:-1], "concat_ws('/', place.node, place.epoch, place.seq) as position"
    )


def marked(incidents: "DataFrame", announced: "DataFrame") -> "DataFrame":
    """The same incidents, with whose announced maintenance each opened in."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

    spans = announced.groupBy("node").agg(F.expr("collect_list(struct(startAt, endAt)) as spans"))
    known = incidents
    for side in ("from", "to"):
        of_side = F.broadcast(spans.selectExpr(f"node as {side}Away", f"spans as {side}Spans"))
        known = known.join(of_side, F.expr(f"{side}Node = {side}Away"), how="left")
    away = f"array_distinct(array_compact(array({_away('from')}, {_away('to')})))"
    found = f"case when class in ({WAITING}) and ({_is_in('from')} or {_is_in('to')}) then {away} end"
    return known.selectExpr(*(f"{found} as {name}" if name == OURS else name for name in OF_INCIDENT))


def _is_in(side: str) -> str:
    inside = "span.startAt <= openedAt and (span.endAt is null or openedAt < span.endAt)"
    return f"coalesce(exists({side}Spans, span -> {inside}), false)"


def _away(side: str) -> str:
    return f"case when {_is_in(side)} then {side}Node end"
