"""Findings say which promise is broken."""

from gateway.harness.sim.findings import Finding, Promise


def test_a_finding_reads_as_its_promise_and_what_shows_it() -> None:
    assert str(Finding(Promise.ENGAGED_ONCE, "n1 did it twice")) == "I3: n1 did it twice"
