"""What a node did about an event, all its agents together."""

from msgspec.structs import replace

from gateway.judging.facts import ledger
from gateway.judging.turns import taken, together
from outbox.kinds import Outcome
from outbox.records import Share, TurnState
from tests.gateway.judging.stories import ASKED, LAB, MBP, START_MS, VPS, mesh, received

SHARED = {"share": Share.ONE_OF_SEVERAL}
DONE = {"state": TurnState.DONE, "delivery_count": 2, **SHARED}


def turns(*outcomes):
    return [
        received(ASKED, f"agent{n}", VPS, **DONE, outcome=outcome, error="no")
        for n, outcome in enumerate(outcomes)
    ]


def test_a_sole_turn_is_its_row():
    (row,) = ledger([received(ASKED, "bo", VPS, TurnState.QUEUED)]).values()
    found = together([row])
    assert (found.done, found.owed, found.outcome, found.sole) == (False, True, None, True)


def test_it_is_done_when_all_are_and_went_well_when_all_did():
    assert together(turns(Outcome.OK, Outcome.OK)).outcome is Outcome.OK
    assert together(turns(Outcome.OK, Outcome.FAILED)).outcome is Outcome.FAILED
    assert together(turns(Outcome.REFUSED, Outcome.REFUSED)).outcome is Outcome.REFUSED
    assert together(turns(Outcome.REFUSED, Outcome.OK)).outcome is Outcome.FAILED
    both = turns(Outcome.OK, Outcome.OK)
    assert together(both).deliveries == 4
    assert not together([both[0], replace(both[1], state=TurnState.LEASED)]).done


def test_who_came_late_is_not_waited_for():
    late = received(ASKED, "late", VPS, TurnState.QUEUED, share=Share.LATE, accepted_at_ms=START_MS)
    found = together([late, *turns(Outcome.OK)])
    assert (found.done, found.owed, found.deliveries, found.accepted_at_ms) == (True, True, 2, START_MS)
    assert not together([late]).owed


def test_two_writers_of_one_id_are_two_events():
    facts = replace(
        mesh()[LAB],
        received=ledger(received(ASKED, "bo", source, TurnState.QUEUED) for source in (VPS, MBP)),
    )
    assert set(taken(facts)) == {(VPS, ASKED), (MBP, ASKED)}
