"""Whether the Spark report tells the story that the journals tell (invariant I9).

The job sees only collected events; the verdict was worked out from delivery rows, ledgers and agents. Where
the two differ, one of them is wrong, and either is a fault.
"""

from collections import Counter
from collections.abc import Iterator

from gateway.judging.faults import Fault, FaultKind
from gateway.judging.story import Found, Story
from outbox.ids import NodeId
from outbox.records import DeliveryState
from spark.rules import IncidentClass
from spark.summary import Summary


def disagreements(story: Story, report: Summary) -> tuple[Fault, ...]:
    """Everything in which the report differs; empty when they agree."""
    return (*_streams(story, report), *_states(story, report), *_incidents(story, report))


def _fault(subject: str, ours: object, theirs: object) -> Fault:
    return Fault(FaultKind.REPORT, subject, f"the journals say {ours}, the report says {theirs}")


def _streams(story: Story, report: Summary) -> Iterator[Fault]:
    collected = {NodeId(stream.node): stream.events for stream in report.streams}
    for node in sorted({*story.entries, *collected}):
        ours, theirs = story.entries.get(node, 0), collected.get(node, 0)
        if ours != theirs:
            yield _fault(f"entries of {node}", ours, theirs)
    for stream in report.streams:
        if stream.flagged:
            yield _fault(f"doubtful entries of {stream.node}", 0, stream.flagged)
    if report.missing_nodes:
        yield _fault("outboxes that are missing", "none", ", ".join(report.missing_nodes))


def _states(story: Story, report: Summary) -> Iterator[Fault]:
    told = {
        (count.kind, DeliveryState(count.state)): count.events
        for count in report.states
        if _is_owed(count.kind)
    }
    for kind, state in sorted({*story.states, *told}):
        ours, theirs = story.states.get((kind, state), 0), told.get((kind, state), 0)
        if ours != theirs:
            yield _fault(f"{kind} {state}", ours, theirs)


def _is_owed(kind: str) -> bool:
    """Only messages and replies have delivery rows; the others owe nothing to anybody."""
    return kind in {"message", "reply"}


def _incidents(story: Story, report: Summary) -> Iterator[Fault]:
    told = {count.name: count.incidents for count in report.classes if count.incidents}
    ours = Counter(found.name for found in story.incidents)
    for name in sorted({*ours, *told}):
        if ours.get(IncidentClass(name), 0) != told.get(name, 0):
            yield _fault(f"incidents {name}", ours.get(IncidentClass(name), 0), told.get(name, 0))
    listed = {Found(IncidentClass(line.name), line.subject) for line in report.incidents}
    if len(report.incidents) == sum(told.values()):
        for missing in sorted(set(story.incidents) - listed):
            yield _fault(missing.subject, missing.name, "nothing")
    for invented in sorted(listed - set(story.incidents)):
        yield _fault(invented.subject, "nothing", invented.name)
