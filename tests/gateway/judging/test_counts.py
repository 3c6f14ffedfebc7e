"""The figures of a run."""

from gateway.judging.counts import count
from gateway.judging.faults import Fault, FaultKind
from tests.gateway.judging.stories import ASKED, mesh, saw, witness


def test_the_story_in_numbers():
    seen = witness()
    saw(seen, ASKED, count=2)
    saw(seen, ASKED, resumed=True)
    rows = [row for facts in mesh().values() for row in facts.deliveries.values()]
    faults = [
        Fault(kind, "evt", "") for kind in (FaultKind.LOST, FaultKind.NOT_IN_OUTBOX, FaultKind.ENGAGED_TWICE)
    ]
    found = count(rows, seen.account(), faults)
    assert (found.sent, found.accepted, found.processed, found.replied) == (5, 4, 1, 1)
    assert (found.failed, found.dead_lettered, found.waiting, found.refused) == (1, 1, 1, 1)
    assert (found.lost, found.engaged_twice, found.redelivered, found.resumed) == (2, 1, 1, 1)
