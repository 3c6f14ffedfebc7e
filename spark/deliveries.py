"""The life of each root event: the sides of all nodes put together into one row.

An event to several agents has a row for each node that it was addressed to, as its sender has a delivery for
each: what one node did says nothing of the others. Such a row's ``subject`` names the node as well.

The sides of a root lie together already, so nothing is exchanged or sorted for it. What the root's own node
says of it (that it exists, that it was given up) counts from that node only, answers only from nodes that the
root was routed to. One side a node is left by then, so these aggregates see each fact once.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from outbox.records import DeliveryState
from spark.events import ADDRESSES, ANSWERS, ROOT, Role, struct
from spark.limits import TASK_COMPLETE_MS, TASK_PROGRESS_MS
from spark.sides import SORTED_BY, said, sides
from spark.sla import Threshold
from spark.tasks import TaskKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HOME = "coalesce(root.fromNode = node, false)"
_ROUTED = said(*ADDRESSES)


def _of(how: str, whose: str, value: str) -> str:
    return f"{how}(case when {whose} then {value} end)"


def _same(how: str, whose: str, *names: str) -> dict[str, str]:
    return {name: _of(how, whose, name) for name in names}


_CLAIM = {"node": "node", "at": "deadAt", "reason": "reason", "attempts": "deadAttempts", "place": "said"}
"""A dead letter: it counts when ``node`` is the root's sender, and that is known when all is together."""

TOGETHER: dict[str, str] = {
    "root": "max(root)",
    "createdAt": "min(createdAt)",
    "first": "min(first)",
    "dead": f"collect_list(case when {said(Role.DEAD)} then {struct(_CLAIM)} end)",
    "facts": _of("bit_or", _ROUTED, "facts"),
    "accepted": _of(
        "min", f"{_ROUTED} and {said(Role.ACCEPTED)}", "named_struct('at', acceptedAt, 'node', node)"
    ),
    **_same(
        "min", _ROUTED, "acceptedAt", "processedAt", "engagedAt", "repliedAt", "answeredAt", "etaFirst",
        "taskAcceptedAt", "completedAt", "failedAt",
    ),
    **_same(
        "max", _ROUTED, "outcome", "error", "deliveries", "refusal", "etaLast", "resolvedVersion",
        "executorVersion", "progressAt", "errorClass",
    ),
    "engagedFirst": _of("min", f"{_ROUTED} and engagedAt is not null", "node"),
    "engagedLast": _of("max", f"{_ROUTED} and engagedAt is not null", "node"),
    **_same("min", _ROUTED, "missFirst"),
    **_same("max", _ROUTED, "missLast"),
    "saidFirst": _of("min", f"{_ROUTED} and not {_HOME}", "said"),
    "saidLast": _of("max", f"{_ROUTED} and not {_HOME}", "said"),
}  # fmt: skip
"""Column → the aggregate over the sides of a root."""

EACH: dict[str, str] = {
    "node": "node",
    "facts": "facts",
    "accepted": f"case when {said(Role.ACCEPTED)} then named_struct('at', acceptedAt, 'node', node) end",
    **{
        name: name
        for name in (
            "acceptedAt", "processedAt", "engagedAt", "repliedAt", "answeredAt", "etaFirst", "outcome",
            "error", "deliveries", "refusal", "etaLast", "timesAddressed", "buriedByFirst", "buriedByLast",
        )
    },
    "deadAt": "buriedAt",
    "reason": "buriedReason",
    "deadAttempts": "buriedAttempts",
    "engagedFirst": "case when engagedAt is not null then node end",
    "engagedLast": "case when engagedAt is not null then node end",
    "missFirst": "missFirst",
    "missLast": "missLast",
    "saidFirst": "said",
    "saidLast": "said",
}  # fmt: skip
"""Of one node of several: column → value on its side. What is not here all nodes have in common."""

DELIVERY = "case when subject <> rootId then toNode end"
"""Of which node of several a lifecycle row is; null of what went to one agent."""

STATES: tuple[tuple[DeliveryState, str], ...] = (
    (DeliveryState.DEAD_LETTER, "isDead"),
    (DeliveryState.REPLIED, said(*ANSWERS)),
    (DeliveryState.PROCESSED, said(Role.PROCESSED)),
    (DeliveryState.ACCEPTED, said(Role.ACCEPTED)),
    (DeliveryState.RETRY_PENDING, f"{said(Role.REFUSED)} or attempts > 1"),
    (DeliveryState.EMITTED, "true"),
)
"""State and condition; the first that holds counts."""

TASK_STATES: tuple[tuple[str, str], ...] = (
    ("failed", said(Role.TASK_FAILED)),
    ("completed", said(Role.TASK_COMPLETED)),
    ("working", said(Role.TASK_UPDATED)),
    ("accepted", said(Role.TASK_ACCEPTED)),
    ("created", "true"),
)
"""Of a ``task_create``: how far its agent came; the first that holds counts."""

LATENCIES: dict[str, tuple[str, str]] = {
    "acceptMs": ("createdAt", "acceptedAt"),
    "queueMs": ("acceptedAt", "engagedAt"),
    "turnMs": ("engagedAt", "processedAt"),
    "processMs": ("createdAt", "processedAt"),
    "replyMs": ("createdAt", "repliedAt"),
}
"""Milliseconds from one time to another. Below zero when the clocks of two nodes disagree: not hidden."""

COLUMNS = (
    "rootId", "subject", "kind", "type", "priority", "fromNode", "fromAgent", "toNode", "toAgent", "toNodes",
    "parentId", "threadId", "hops", "capabilityId", "requestedVersion", "resolvedVersion",
    "delegationVersion", "executorVersion", "position", "evidence", "createdAt", "acceptedAt",
    "engagedAt", "processedAt", "repliedAt", "deadAt", "doneAt", "expiresAt", "taskAcceptedAt",
    "progressAt", "completedAt", "failedAt", "finishedAt", "etaFirst", "etaAt", "state", "taskState",
    "attempts", "deliveries", "outcome", "error", "refusal", "reason", "errorClass", "isAnswered",
    "misroutedTwice", "engagedNode", "otherEngagedNode", "acceptDueAt", "processDueAt", "progressDueAt",
    "completeDueAt", *LATENCIES,
)  # fmt: skip
"""What is known of each root event."""


LIFECYCLE = (*COLUMNS, "incidents")
"""The lifecycle table. ``incidents`` are the rules that a row breaks; where it breaks none it is null, and so
is ``evidence``: nobody asks for it there, and it is the widest column."""

UNLIKE = (
    "rootId", "subject", "parentId", "threadId", "position", "createdAt", "acceptedAt", "engagedAt",
    "processedAt", "repliedAt", "doneAt", "expiresAt", "acceptDueAt", "processDueAt",
)  # fmt: skip
"""Columns in which hardly any value comes twice."""

_NOTHING: Mapping[str, str] = {}


def deliveries(
    statements: "DataFrame", thresholds: Mapping[str, Threshold], found: str | None = None
) -> "DataFrame":
    """One row a root event (or node of several), with ``LIFECYCLE``; ``found`` is the SQL of ``incidents``.

    Without it there are ``COLUMNS``.

    What was only ever answered, and is not in the lake itself, has no row: nothing is known of when it began.
    """
    return lives(sides(statements), thresholds, found=found).where("kind is not null")


def lives(
    sides: "DataFrame",
    thresholds: Mapping[str, Threshold],
    each: Mapping[str, str] = _NOTHING,
    *,
    found: str | None = None,
    **more: str,
) -> "DataFrame":
    """As ``deliveries``, and with a row for what was only ever answered: its ``kind`` is null.

    ``more`` are further columns, and the aggregate of each over the sides of a root; ``each`` says what some
    of them are on the side of one node of several. Without ``found`` every row has its evidence.
    """
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

    of_one = f"collect_list(case when {said(Role.ADDRESSED)} then {struct({**EACH, **each})} end)"
    together = [F.expr(aggregate).alias(name) for name, aggregate in (TOGETHER | more).items()]
    gathered = sides.groupBy(*SORTED_BY).agg(*together, F.expr(of_one).alias("each"))
    known = gathered.selectExpr("* except (each, dead)", f"{OWN_DEAD} as dead", "explode_outer(each) as one")
    known = known.selectExpr(*_of_one((*TOGETHER, *more), (*EACH, *each))).selectExpr("*", *_facts())
    judged = known.selectExpr("*", *_judgements(thresholds))
    if found is None:
        return judged.selectExpr("*", f"{EVIDENCE} as evidence").select(*COLUMNS, *more)
    broken = judged.selectExpr("*", f"{found} as incidents")
    shown = broken.selectExpr("*", f"case when incidents is not null then {EVIDENCE} end as evidence")
    return shown.select(*LIFECYCLE, *more)


OWN_DEAD = "get(filter(dead, claim -> claim.node = root.fromNode), 0)"
"""The dead letter of the root's own node; there is one side of each node."""

_DEAD = {
    "deadAt": "dead.at",
    "reason": "dead.reason",
    "deadAttempts": "dead.attempts",
    "buried": "dead.place",
}
"""What is known of that."""


def _of_one(names: Sequence[str], each: Sequence[str]) -> list[str]:
    """These columns, of one node where an event went to several; and which."""
    of_one = {name: f"if(one is null, {name}, one.{name})" for name in each if name in names}
    # Who buried it there, and is its sender: of anybody else that is a claim.
    buried = "root.fromNode in (one.buriedByFirst, one.buriedByLast)"
    of_one["isDead"] = f"if(one is null, dead is not null, {buried})"
    for name, value in _DEAD.items():
        theirs = f"if({buried}, {f'one.{name}' if name in EACH else value}, null)"
        of_one[name] = f"if(one is null, {value}, {theirs})"
    shown = dict.fromkeys((*names, *_DEAD, "isDead"))
    together = (f"{of_one.get(name, name)} as {name}" for name in shown if name not in {"root", "dead"})
    root = (f"root.{name} as {name}" for name in ROOT)
    return ["rootId", *root, *together, "one.node as severalNode", "one.timesAddressed as timesAddressed"]


_SENT_TO = "case when toNodes not in ('', '*') then toNodes end"

_SHOWN = ("first", "missFirst", "saidFirst", "saidLast", "buried")


def _facts() -> list[str]:
    return [
        "greatest(coalesce(timesAddressed, attempt), deadAttempts, 1) as attempts",
        "concat_ws('@', rootId, severalNode) as subject",
        # Before anybody accepted: where the last attempt was sent, when that is one node.
        f"coalesce(severalNode, accepted.node, {_SENT_TO}) as toNode",
        f"{_place('first')} as position",
        "least(processedAt, answeredAt) as doneAt",
        "least(completedAt, failedAt) as finishedAt",
        "etaLast as etaAt",
        f"{said(*ANSWERS)} as isAnswered",
        "coalesce(missFirst <> missLast, false) as misroutedTwice",
        "engagedFirst as engagedNode",
        "case when engagedFirst <> engagedLast then engagedLast end as otherEngagedNode",
    ]


def _place(name: str) -> str:
    return f"case when {name} is not null then concat_ws('/', {name}.node, {name}.epoch, {name}.seq) end"


EVIDENCE = f"array_distinct(array_compact(array({', '.join(map(_place, _SHOWN))})))"
"""Where the events lie that show how a root fared."""


def _judgements(thresholds: Mapping[str, Threshold]) -> list[str]:
    accept = {kind: threshold.accept_ms for kind, threshold in thresholds.items()}
    process = {kind: threshold.process_ms for kind, threshold in thresholds.items()}
    take_on = f"coalesce(acceptWithinMs, {_by_kind(process)})"
    complete = f"coalesce(completeWithinMs, {TASK_COMPLETE_MS}L)"
    return [
        f"case {_cases(STATES)} end as state",
        f"case when kind = '{TaskKind.CREATE}' then case {_cases(TASK_STATES)} end end as taskState",
        f"{_after('createdAt', _by_kind(accept))} as acceptDueAt",
        f"{_after('acceptedAt', take_on)} as processDueAt",
        f"{_after('progressAt', f'{TASK_PROGRESS_MS}L')} as progressDueAt",
        f"coalesce(etaLast, {_after('taskAcceptedAt', complete)}) as completeDueAt",
        *(f"{_between(start, end)} as {name}" for name, (start, end) in LATENCIES.items()),
    ]


def _after(moment: str, ms: str) -> str:
    """As ``timestampadd``, which goes by way of a calendar."""
    return f"timestamp_micros(unix_micros({moment}) + {ms} * 1000)"


def _between(start: str, end: str) -> str:
    """Whole milliseconds; as ``timestampdiff``, which goes by way of a calendar."""
    return f"(unix_micros({end}) - unix_micros({start})) div 1000"


def _cases(states: tuple[tuple[str, str], ...]) -> str:
    return " ".join(f"when {condition} then '{state}'" for state, condition in states)


def _by_kind(values: Mapping[str, int | None]) -> str:
    """A SQL expression: the value for the row's kind, null where there is none."""
    cases = [f"when '{kind}' then {value}L" for kind, value in sorted(values.items()) if value is not None]
    return f"case kind {' '.join(cases)} end" if cases else "cast(null as bigint)"
