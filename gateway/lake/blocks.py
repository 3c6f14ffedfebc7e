"""A block of generated history: many roots at once, column by column.

Pure: the same seed and number give the same block on any machine with the same pyarrow. Everything is
computed on whole columns, never on rows, so that millions of events take seconds.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from gateway.lake.plans import PLANS, Plan
from gateway.lake.steps import Step, Who
from outbox.kinds import AckStatus, Kind
from spark.limits import CLOCK_SKEW_MS
from spark.rules import IncidentClass
from spark.schema import arrow_schema
from spark.tasks import STEPS, TaskKind

WEIGHTS = sum(plan.weight for plan in PLANS)
EVENTS_PER_ROOT = sum(plan.weight * len(plan.steps) for plan in PLANS) / WEIGHTS

SPACING_MS = 40
"""From one root to the next, of the whole mesh."""

EXPIRES_MS = 7 * 24 * 3600 * 1000

_SCHEMA = pa.schema(
    [field.with_nullable(True) for field in arrow_schema() if field.name not in {"epoch", "seq"}]
)
_HEX = pa.array([f"{number:04x}" for number in range(1 << 16)])
_ANSWERS = (Kind.REPLY, *STEPS)
_ROOTS = (Kind.MESSAGE, TaskKind.CREATE)
_SPEAKS_OF = (Kind.ACK, Kind.DEAD_LETTER)


class Mesh(NamedTuple):
    """Who takes part."""

    nodes: tuple[str, ...]
    """The first is the busiest."""
    agents: tuple[str, ...]
    capabilities: tuple[str, ...]
    behind_ms: tuple[int, ...]
    """Of each node: how far its clock is behind."""


class Block(NamedTuple):
    """Rows of all nodes, and what a report must find in them."""

    rows: pa.Table
    """The columns of an event row but ``epoch`` and ``seq``, and ``node``, its number: outbox by outbox."""
    truth: pa.Table
    """``class``, ``subject``."""


TRUTH = pa.schema(
    [pa.field("class", pa.string(), nullable=False), pa.field("subject", pa.string(), nullable=False)]
)


class _Dice:
    """A column of chances for each thing that is left to chance."""

    def __init__(self, seed: int, block: int) -> None:
        self._next = (seed << 40) + (block << 16)

    def roll(self, count: int) -> pa.Array:
        self._next += 1
        return pc.random(count, initializer=self._next)

    def below(self, count: int, limit: int) -> pa.Array:
        return _whole(pc.multiply(self.roll(count), limit))


def _whole(values: pa.Array) -> pa.Array:
    return pc.cast(pc.floor(values), pa.int64())


def make_block(mesh: Mesh, seed: int, number: int, count: int, start_ms: int) -> Block:
    """``count`` roots, the first of them created at ``start_ms``."""
    dice = _Dice(seed, number)
    roots = _roots(mesh, dice, count, start_ms)
    chosen = dice.below(count, WEIGHTS)
    tables: list[pa.Table] = []
    truth: list[pa.Table] = []
    low = 0
    for plan in PLANS:
        high = low + plan.weight
        mine = roots.filter(pc.and_(pc.greater_equal(chosen, low), pc.less(chosen, high)))
        low = high
        story = _Story(mesh, plan, mine, dice)
        tables += story.tables()
        truth += story.truth()
    nothing = pa.schema([*_SCHEMA, pa.field("node", pa.int64()), pa.field("order", pa.int64())]).empty_table()
    rows = pa.concat_tables([nothing, *tables], promote_options="default")
    order = pc.sort_indices(rows, sort_keys=[("node", "ascending"), ("order", "ascending")])
    return Block(rows.take(order).drop_columns(["order"]), pa.concat_tables(truth))


def _roots(mesh: Mesh, dice: _Dice, count: int, start_ms: int) -> pa.Table:
    size = len(mesh.nodes)
    # A cube of chance: the first node sends more than a quarter of everything.
    sender = _whole(pc.multiply(pc.power(dice.roll(count), 3), size))
    step = pc.add(dice.below(count, size - 1), 1)
    receiver = _modulo(pc.add(sender, step), size)
    other = _modulo(pc.add(receiver, 1), size)
    other = pc.if_else(pc.equal(other, sender), _modulo(pc.add(other, 1), size), other)
    created = pc.add(pa.array(range(0, count * SPACING_MS, SPACING_MS)), start_ms)
    columns = {
        "sender": sender,
        "receiver": receiver,
        "other": other,
        "created": created,
        "fromAgent": dice.below(count, len(mesh.agents)),
        "toAgent": dice.below(count, len(mesh.agents)),
        "capability": dice.below(count, len(mesh.capabilities)),
        **{f"chance{place}": dice.below(count, 1 << 16) for place in range(4)},
    }
    return pa.table(columns)


def _modulo(values: pa.Array, size: int) -> pa.Array:
    return pc.subtract(values, pc.multiply(pc.divide(values, size), size))


class _Story:
    """All roots of a block that follow one plan."""

    def __init__(self, mesh: Mesh, plan: Plan, roots: pa.Table, dice: _Dice) -> None:
        self._mesh, self._plan, self._roots, self._dice = mesh, plan, roots, dice
        self._nodes = pa.array(mesh.nodes)
        self._behind = pa.array(mesh.behind_ms)
        self._after = [self._delays(*step.after_ms) for step in plan.steps]
        self._ids: dict[int, pa.Array] = {}

    def tables(self) -> Iterator[pa.Table]:
        for place, step in enumerate(self._plan.steps):
            yield self._table(place, step)

    def truth(self) -> Iterator[pa.Table]:
        """Incidents of the plan's roots, and of the clocks that its ACKs show."""
        for name in self._plan.incidents:
            if name is IncidentClass.UNKNOWN_KIND:
                (step,) = self._plan.steps
                subjects = _joined(pc.unique(self._node(Who.SENDER)), f"/{step.kind}")
            elif self._plan.at is not None:
                subjects = pc.binary_join_element_wise(self._id(0), self._node(self._plan.at), "@")
            else:
                subjects = self._id(0)
            yield _told(name, subjects)
        for step, after in zip(self._plan.steps, self._after, strict=True):
            said = dict(step.fields)
            if said.get("status") == AckStatus.ACCEPTED and "flags" not in said and self._is_heard(step):
                yield self._skew(step, after)

    def _skew(self, step: Step, after: pa.Array) -> pa.Table:
        by, to = self._number(step.by), self._number(step.to)
        seen = pc.subtract(after, self._after[step.about])
        seen = pc.add(pc.subtract(seen, self._behind.take(by)), self._behind.take(to))
        wrong = pc.less(seen, -CLOCK_SKEW_MS)
        pairs = pc.binary_join_element_wise(self._node(step.to), self._node(step.by), ">")
        return _told(IncidentClass.CLOCK_SKEW, pc.unique(pairs.filter(wrong)))

    def _is_heard(self, step: Step) -> bool:
        """Whether anybody was asked there: an ACK from elsewhere says nothing."""
        asked = {root.to for root in self._plan.steps if root.kind in _ROOTS}
        asked |= {Who.OTHER for root in self._plan.steps if root.to_group}
        return step.about != 0 or step.by in asked

    def _delays(self, shortest: int, longest: int) -> pa.Array:
        return pc.add(self._dice.below(len(self._roots), longest - shortest + 1), shortest)

    def _number(self, who: Who) -> pa.Array:
        return self._roots[who].combine_chunks()

    def _node(self, who: Who) -> pa.Array:
        return self._nodes.take(self._number(who))

    def _group(self) -> pa.Array:
        return pc.binary_join_element_wise(self._node(Who.RECEIVER), self._node(Who.OTHER), ",")

    def _id(self, place: int) -> pa.Array:
        """Ids of the events of one step; all attempts of the root are one event."""
        if place not in self._ids:
            created = pc.add(self._roots["created"].combine_chunks(), self._after[place])
            chances = [self._roots[f"chance{number}"].combine_chunks() for number in range(4)]
            variant = pc.add(pc.bit_wise_and(chances[0], 0x3FFF), 0x8000)
            groups = [
                pc.shift_right(created, 32),
                pc.bit_wise_and(pc.shift_right(created, 16), 0xFFFF),
                pc.bit_wise_and(created, 0xFFFF),
                pa.repeat(pa.scalar(0x7000 + place), len(self._roots)),
                variant,
                *chances[1:],
            ]
            self._ids[place] = pc.binary_join_element_wise(
                "evt_", *(_HEX.take(group) for group in groups), ""
            )
        return self._ids[place]

    def _table(self, place: int, step: Step) -> pa.Table:
        count = len(self._roots)
        by, clock = self._number(step.by), pc.add(self._roots["created"].combine_chunks(), self._after[place])
        told = pc.subtract(clock, self._behind.take(by))
        columns: dict[str, pa.Array] = {
            **self._names(place, step),
            "sourceNodeId": self._node(step.by),
            "kind": _same(step.kind, count),
            "toNodes": self._group() if step.to_group else self._node(step.to),
            "createdAt": _time(told),
            "digest": self._dice.below(count, 1 << 52),
            "bytes": pc.add(self._dice.below(count, 600), 300),
            "priority": _same(2, count),
            **{name: _same(value, count) for name, value in step.fields},
            **{name: self._time_after(ms, by) for name, ms in step.offsets},
        }
        columns.setdefault("attempt", _same(1, count))
        fields = [field for field in _SCHEMA if columns.get(field.name) is not None]
        arrays = [columns[field.name].cast(field.type) for field in fields]
        return pa.table([*arrays, by, clock], names=[*(field.name for field in fields), "node", "order"])

    def _names(self, place: int, step: Step) -> dict[str, pa.Array]:
        """Ids and agents: what an event is, and what it is about."""
        root, agents = self._id(0), pa.array(self._mesh.agents)
        asks, answers = (agents.take(self._roots[name].combine_chunks()) for name in ("fromAgent", "toAgent"))
        if step.kind in _ROOTS:
            columns = {
                "eventId": root, "rootId": root, "threadId": root, "sourceAgentId": asks,
                "expiresAt": self._time_after(EXPIRES_MS, None),
            }  # fmt: skip
            if not step.to_group:
                columns |= {"toAgentId": answers, "ownerNodeId": self._node(step.to)}
            if self._plan.is_task:
                names = pa.array(self._mesh.capabilities)
                columns["capabilityId"] = names.take(self._roots["capability"].combine_chunks())
            return columns
        own = self._id(place)
        if step.kind in _ANSWERS:
            return {
                "eventId": own, "rootId": own, "corrId": root, "threadId": root, "sourceAgentId": answers,
                "toAgentId": asks,
            }  # fmt: skip
        about = self._id(step.about) if step.kind in _SPEAKS_OF else None
        return {"eventId": own, "rootId": own if about is None else about, "corrId": about}

    def _time_after(self, ms: int, by: pa.Array | None) -> pa.Array:
        at = pc.add(self._roots["created"].combine_chunks(), ms)
        return _time(at if by is None else pc.subtract(at, self._behind.take(by)))


def _same(value: str | int, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(str(value) if isinstance(value, str) else value), count)


def _time(ms: pa.Array) -> pa.Array:
    return pc.multiply(ms, 1000).cast(pa.timestamp("us", tz="UTC"))


def _joined(values: pa.Array, tail: str) -> pa.Array:
    return pc.binary_join_element_wise(values, tail, "")


def _told(name: IncidentClass, subjects: pa.Array) -> pa.Table:
    return pa.table([_same(name, len(subjects)), subjects], schema=TRUTH)
