"""One fault as a line for people."""

from gateway.crashpoint import CrashPoint
from gateway.harness.real.faultclass import FaultClass
from gateway.harness.real.injection import Injection
from outbox.ids import NodeId

N1, N2 = NodeId("n1"), NodeId("n2")


def test_the_line_says_when_what_whom_how_long_and_how_strong():
    slow = Injection(at_ms=1_500, fault=FaultClass.SLOW, targets=(N1, N2), for_ms=2_000, amount=80)
    assert slow.line == "    1.5 s  slow       n1 n2 for 2.0 s (80)"
    assert slow.until_ms == 3_500
    crash = Injection(
        at_ms=0,
        fault=FaultClass.CRASH,
        targets=(N1,),
        for_ms=3_000,
        amount=4,
        point=CrashPoint.ENGINE_AFTER_COMMIT,
    )
    assert crash.line.endswith("crash      n1 for 3.0 s (engine_after_commit:4)")
    oneway = Injection(at_ms=0, fault=FaultClass.ONEWAY, targets=(N1, N2), for_ms=500)
    assert "n1 > n2 for 0.5 s" in oneway.line
