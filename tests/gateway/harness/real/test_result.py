"""The figures of a run."""

from gateway.harness.real.faultclass import FaultClass
from gateway.harness.real.injection import Injection
from gateway.harness.real.notes import End
from gateway.harness.real.result import counts_of, ends_of, injected_of, times_of
from gateway.judging.faults import Fault, FaultKind
from tests.gateway.harness.real.test_verdict import good
from tests.gateway.judging.stories import LAB, VPS


def injection(fault: FaultClass, node: str = VPS) -> Injection:
    return Injection(at_ms=0, fault=fault, targets=(node,), for_ms=1)


def test_faults_are_counted_by_class_in_the_order_of_the_table():
    happened = [injection(fault) for fault in (FaultClass.STORM, FaultClass.KILL, FaultClass.STORM)]
    assert injected_of(happened) == {"kill": 1, "storm": 2}


def test_ends_are_counted_by_their_reason():
    ends = tuple(End(node=LAB, status=1, trouble=trouble) for trouble in (None, FaultClass.FAILFSYNC, None))
    assert ends_of(good(ends=ends)) == {"unexplained": 2, "failfsync": 1}


def test_messages_are_counted():
    counts = counts_of(good(), (Fault(FaultKind.LOST, "evt", "gone"),))
    assert (counts.sent, counts.accepted, counts.replied, counts.failed, counts.lost) == (3, 3, 1, 1, 1)


def test_a_sender_whose_clock_was_wrong_gives_no_times():
    whole, without = times_of(good(), ()), times_of(good(), [injection(FaultClass.CLOCK)])
    assert whole.processed_ms is not None
    assert whole.processed_ms.p50 == 22
    assert without.processed_ms is None
