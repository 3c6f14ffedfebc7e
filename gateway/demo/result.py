"""The outcome of a run as one record: what tables and JSON are made of."""

import msgspec

from gateway.demo.verdict import Verdict
from gateway.judging.counts import Counts
from gateway.judging.facts import NodeFacts
from gateway.judging.faults import Fault
from gateway.judging.percentiles import Percentiles
from gateway.judging.story import obligations
from outbox.ids import EventId, NodeId
from outbox.kinds import Kind
from outbox.records import DeliveryState


class Incident(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One incident, as the report must show it."""

    name: str = msgspec.field(name="class")
    event_id: EventId
    planted: bool
    what: str
    """Who wrote to whom."""
    detail: str = ""


class Paths(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Where things are."""

    directory: str
    logs: str
    lake: str | None = None
    report: str | None = None


class Crash(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The gateway that was killed."""

    node: NodeId
    away_ms: int


class Refused(msgspec.Struct, frozen=True):
    """A message that no gateway took."""

    what: str
    hint: str


class Result(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Everything that is shown at the end."""

    ok: bool
    messages: int
    replies: int
    counts: Counts
    accepted_ms: Percentiles | None
    processed_ms: Percentiles | None
    entries: dict[NodeId, int]
    crash: Crash
    incidents: tuple[Incident, ...]
    refused: tuple[Refused, ...]
    faults: tuple[Fault, ...]
    report_agrees: bool | None
    """None when no report was made."""
    paths: Paths


def incidents_of(verdict: Verdict, mesh: dict[NodeId, NodeFacts]) -> tuple[Incident, ...]:
    """The verdict's incidents with names that people know."""
    debts = obligations(mesh)
    planted = set(verdict.planted.values())
    found = []
    for incident in verdict.incidents:
        event = EventId(incident.subject)
        if event not in debts:
            continue  # it is of nodes, and a fault of its own
        row = debts[event][0]
        found.append(
            Incident(
                name=incident.name,
                event_id=event,
                planted=event in planted,
                what=f"{row.from_agent} to {row.to_agent}",
                detail=row.error or ("answered late" if row.processed_at_ms else "accepted, no answer"),
            )
        )
    return tuple(sorted(found, key=lambda incident: not incident.planted))


def kinds_of(states: dict[tuple[str, DeliveryState], int]) -> tuple[int, int]:
    """How many messages and how many replies there were."""
    messages = sum(count for (kind, _), count in states.items() if kind == Kind.MESSAGE)
    return messages, sum(states.values()) - messages
