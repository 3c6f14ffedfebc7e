"""The report is held against the verdict; each way to differ is noticed."""

from msgspec.structs import replace

from gateway.demo.verdict import judge
from gateway.judging.agreement import disagreements
from gateway.judging.faults import FaultKind
from spark.rules import RULES
from spark.sla import DEFAULTS
from spark.summary import ClassCount, IncidentLine, LatencyLine, StateCount, Stream, Summary
from tests.gateway.judging.stories import ASKED, LAB, MBP, START_MS, VPS, case

VERDICT = judge(case())


def line(name, event):
    return IncidentLine(
        incident_id=f"{name}:{event}",
        name=name,
        severity=RULES[name].severity,
        subject=event,
        root_id=event,
        kind="message",
        from_node="vps",
        state="accepted",
        attempts=1,
    )


def nodes_line(source, target):
    return LatencyLine(
        dimension="nodes", source=source, target=target, events=1, accept_judged=1, accepted_in_time=1,
        process_judged=1, processed_in_time=1, failed=0, dead=0, retried=0, accept_ms=None, process_ms=None,
        reply_ms=None,
    )  # fmt: skip


def summary(**changes):
    """The report that tells what the verdict tells."""
    acks = StateCount("signal", "emitted", 7)
    whole = Summary(
        as_of_ms=START_MS + 60_000,
        thresholds=DEFAULTS,
        streams=tuple(Stream(node, seq, 0) for node, seq in VERDICT.entries.items()),
        states=(*(StateCount(kind, state, count) for (kind, state), count in VERDICT.states.items()), acks),
        classes=tuple(ClassCount(found.name, "major", 1, 1) for found in VERDICT.incidents),
        latency=(nodes_line("vps", "lab"),),
        buckets=(),
        bucket_ms=1000,
        incidents=tuple(line(found.name, found.subject) for found in VERDICT.incidents),
    )
    return replace(whole, **changes)


def subjects(report):
    found = disagreements(VERDICT, report)
    assert all(fault.kind is FaultKind.REPORT for fault in found)
    return [fault.subject for fault in found]


def test_the_same_story_is_no_fault():
    assert disagreements(VERDICT, summary()) == ()


def test_a_lake_that_lacks_entries_or_a_node_differs():
    short = (Stream(VPS, 5, 0), Stream(MBP, 2, 0))
    missing = ["entries of lab", "entries of vps", "outboxes that are missing"]
    assert subjects(summary(streams=short)) == missing


def test_doubtful_entries_differ():
    doubtful = tuple(replace(stream, flagged=int(stream.node == LAB)) for stream in summary().streams)
    assert subjects(summary(streams=doubtful)) == ["doubtful entries of lab"]


def test_an_outbox_that_is_addressed_and_missing_differs():
    assert subjects(summary(latency=(nodes_line("vps", "elsewhere"),))) == ["outboxes that are missing"]


def test_other_counts_by_state_differ():
    states = tuple(
        replace(count, events=count.events + (count.state == "replied")) for count in summary().states
    )
    assert subjects(summary(states=states)) == ["message replied"]


def test_an_incident_that_was_not_found_differs():
    report = summary()
    fewer = summary(classes=report.classes[1:], incidents=report.incidents[1:])
    missing = VERDICT.incidents[0]
    assert subjects(fewer) == [f"incidents {missing.name}", missing.subject]


def test_an_invented_incident_differs_even_if_the_counts_agree():
    report = summary()
    swapped = (line(report.incidents[0].name, ASKED), *report.incidents[1:])
    assert subjects(summary(incidents=swapped)) == [VERDICT.incidents[0].subject, ASKED]
