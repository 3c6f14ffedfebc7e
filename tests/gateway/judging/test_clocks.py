"""Clocks that disagree are seen, and only what somebody has set is no fault."""

import pytest
from msgspec.structs import replace

from gateway.judging.clocks import Wrong, check_clocks, skews
from gateway.judging.faults import FaultKind
from tests.gateway.judging.stories import LAB, MBP, VPS, mesh


def behind(node, by_ms):
    """The good story, told by a node whose clock is behind."""
    facts = mesh()
    late = tuple(replace(entry, at_ms=entry.at_ms - by_ms) for entry in facts[node].outbox)
    return {**facts, node: replace(facts[node], outbox=late)}


def test_the_least_time_to_an_ack_is_kept_for_each_pair():
    assert skews(mesh()) == {(VPS, LAB): 10, (VPS, MBP): 10, (LAB, VPS): 10}
    assert skews(behind(LAB, 5_000)) == {(VPS, LAB): -4_990, (VPS, MBP): 10, (LAB, VPS): 5_010}


def test_what_a_node_sends_to_itself_shows_no_clock():
    facts = mesh()[VPS]
    own = replace(mesh()[LAB].outbox[0], at_ms=0)
    assert (VPS, VPS) not in skews({VPS: replace(facts, outbox=(*facts.outbox, own))})


@pytest.mark.parametrize(
    ("wrong", "broken"),
    [
        ({}, True),
        ({LAB: Wrong(behind_ms=5_000)}, False),
        ({VPS: Wrong(ahead_ms=5_000)}, False),
        ({VPS: Wrong(ahead_ms=3_000), LAB: Wrong(behind_ms=2_000)}, False),
        ({LAB: Wrong(behind_ms=3_000)}, True),  # not by so much
        ({LAB: Wrong(ahead_ms=60_000)}, True),  # the other way
        ({MBP: Wrong(60_000, 60_000)}, True),  # another clock
    ],
)
def test_a_skew_that_nobody_caused_is_a_fault(wrong, broken):
    found = [(fault.kind, fault.subject) for fault in check_clocks(behind(LAB, 5_000), wrong)]
    assert found == ([(FaultKind.CLOCK, "vps>lab")] if broken else [])


def test_a_second_is_no_skew():
    assert list(check_clocks(behind(LAB, 1_000), {})) == []
