"""The outcome of a run as one record: what the screen, the page and the JSON document are made of."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from gateway.harness.real.faultclass import FaultClass
from gateway.harness.real.injection import Injection
from gateway.harness.real.notes import Case
from gateway.judging.clocks import Wrong
from gateway.judging.counts import Counts, count
from gateway.judging.facts import NodeFacts
from gateway.judging.faults import Fault
from gateway.judging.losses import losses
from gateway.judging.percentiles import Percentiles, percentiles
from outbox.ids import NodeId
from outbox.records import Delivery


class Times(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """From the send, by the sender's clock; senders whose clock was set wrong are left out."""

    accepted_ms: Percentiles | None
    processed_ms: Percentiles | None


class Result(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Everything that is shown at the end."""

    ok: bool
    seed: int
    nodes: int
    duration_s: int
    took_s: float
    rate: float
    counts: Counts
    times: Times
    injected: dict[str, int]
    """Faults that happened, by class."""
    skipped: dict[str, str]
    """Classes that this machine cannot inject, with the reason."""
    ends: dict[str, int]
    """Gateways that ended by themselves, by what had been done to them."""
    starts: int
    entries: dict[NodeId, int]
    schedule: tuple[str, ...]
    faults: tuple[Fault, ...]
    repeat: str
    """The command that repeats the run."""
    directory: str
    report_agrees: bool | None = None
    """Whether the Spark report tells the same story; None when none was made."""
    kept: bool
    """Whether the homes are still there."""


def injected_of(injections: Iterable[Injection]) -> dict[str, int]:
    """How often each class happened."""
    found = Counter(one.fault for one in injections)
    return {fault: found[fault] for fault in FaultClass if found[fault]}


def ends_of(case: Case) -> dict[str, int]:
    """Unasked ends by their explanation."""
    return dict(Counter(str(end.trouble or "unexplained") for end in case.ends))


def counts_of(case: Case, faults: tuple[Fault, ...]) -> Counts:
    """How the messages fared."""
    return count(_rows(case.mesh), case.account, faults, losses(case.mesh, case.account, case.pasts))


def clocks_of(injections: Iterable[Injection]) -> dict[NodeId, Wrong]:
    """How wrong each clock was set that was."""
    found: dict[NodeId, Wrong] = {}
    for one in injections:
        if one.fault is FaultClass.CLOCK:
            before, off_ms = found.get(one.targets[0], Wrong()), one.amount * 1000
            found[one.targets[0]] = Wrong(max(before.ahead_ms, off_ms), max(before.behind_ms, -off_ms))
    return found


def times_of(case: Case, injections: Iterable[Injection]) -> Times:
    """How long they took, without the senders whose clock was set wrong in between."""
    wrong = {one.targets[0] for one in injections if one.fault is FaultClass.CLOCK}
    rows = _rows({node: facts for node, facts in case.mesh.items() if node not in wrong})
    accepted = [row.accepted_at_ms - row.created_at_ms for row in rows if row.accepted_at_ms is not None]
    ends = [
        at_ms - row.created_at_ms
        for row in rows
        for at_ms in (row.processed_at_ms or row.replied_at_ms,)
        if at_ms is not None
    ]
    return Times(accepted_ms=percentiles(accepted), processed_ms=percentiles(ends))


def _rows(mesh: Mapping[NodeId, NodeFacts]) -> list[Delivery]:
    return [row for facts in mesh.values() for row in facts.deliveries.values()]
