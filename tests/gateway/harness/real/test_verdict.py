"""A run that went well has no fault; each that is put in by hand is found, as what it is."""

from msgspec.structs import replace

from gateway.engine.forks import ROLLBACK
from gateway.harness.real.faultclass import FaultClass
from gateway.harness.real.notes import Case, End, Mark
from gateway.harness.real.verdict import check_mark, judge
from gateway.judging.facts import debts, ledger
from gateway.judging.faults import FaultKind
from gateway.judging.lives import Life
from gateway.judging.pasts import Way
from gateway.judging.witness import Account, Refusal, Sighting
from outbox.chain import Head
from outbox.ids import AgentId, NodeId, Seq
from outbox.records import DeliveryState
from tests.gateway.judging.bygones import gave_up, opened, past
from tests.gateway.judging.stories import ASKED, EPOCH, FAILING, LAB, MBP, OWNERLESS, UNANSWERED, VPS
from tests.gateway.judging.stories import mesh as story
from tests.gateway.judging.stories import witness as story_witness


def good(**changes: object) -> Case:
    """The story without what its people planted: nothing waits, nothing is dead, nothing was refused."""
    facts = story()
    deliveries = {
        debt: row for debt, row in facts[VPS].deliveries.items() if debt.event not in {UNANSWERED, OWNERLESS}
    }
    failed = replace(facts[MBP].received[VPS, FAILING, "clumsy"], error="no")
    facts[MBP] = replace(facts[MBP], received=ledger([failed]))
    facts[VPS] = replace(facts[VPS], deliveries=deliveries)
    account = replace(story_witness().account(), refusals=())
    return replace(Case(mesh=facts, account=account), **changes)


def kinds(case: Case) -> list[FaultKind]:
    return [fault.kind for fault in judge(case)]


def test_a_good_run_has_no_fault():
    assert judge(good()) == ()


def test_what_the_harness_saw():
    end = End(node=LAB, status=1, trouble=None)
    refusal = Refusal(key="line-9", code="unknown_recipient", what="no agent", hint="")
    account = replace(good().account, refusals=(refusal,))
    assert kinds(good(rested=False)) == [FaultKind.UNFINISHED]
    assert kinds(good(unanswered=2)) == [FaultKind.UNFINISHED]
    assert kinds(good(rooms_differ="vps and lab disagree")) == [FaultKind.ROOM]
    assert kinds(good(ends=(end,))) == [FaultKind.CRASHED]
    assert kinds(good(complaints=((LAB, "tick.failed"),))) == [FaultKind.CRASHED]
    assert kinds(good(readmitted=(LAB,))) == [FaultKind.ADMISSION]
    assert kinds(good(account=account)) == [FaultKind.REFUSED]


def test_a_lease_that_a_death_ended_is_found():
    lives = (Life(node=LAB, began_ms=0, ended_ms=1_000), Life(node=LAB, began_ms=2_000))
    seen = [
        Sighting(
            order=order, at_ms=at_ms, agent=AgentId("bo"), node=LAB, event_id=ASKED,
            lease_id=f"lease_{order}", delivery_count=1, resumed=False,
        )
        for order, at_ms in enumerate((900, 2_500))
    ]  # fmt: skip
    account = replace(good().account, sightings=tuple(seen), settlements=())
    assert kinds(good(account=account, lives=lives)) == [FaultKind.TURN]
    assert kinds(good(account=account)) == []


def test_an_end_that_was_brought_about_is_none_of_its_own():
    assert kinds(good(ends=(End(node=LAB, status=1, trouble=FaultClass.FAILFSYNC),))) == []


def test_something_from_outside_is_found():
    facts = good().mesh
    row = replace(facts[LAB].received[VPS, ASKED, "bo"], source=NodeId("stranger"))
    facts[LAB] = replace(facts[LAB], received={**facts[LAB].received, **ledger([row])})
    assert FaultKind.ADMISSION in kinds(good(mesh=facts))


def test_a_message_that_nobody_was_told_of_is_found():
    promises = tuple(one for one in good().account.promises if one.event_id != FAILING)
    account = replace(good().account, promises=promises)
    assert kinds(good(account=account)) == [FaultKind.OUTBOX]
    assert kinds(good(account=account, unanswered=1)) == [FaultKind.UNFINISHED]


def test_only_brief_messages_may_be_dead():
    facts = good().mesh
    dead = replace(
        facts[VPS].deliveries[FAILING, MBP], state=DeliveryState.DEAD_LETTER, error="expired", outcome=None
    )
    facts[VPS] = replace(facts[VPS], deliveries={**facts[VPS].deliveries, **debts([dead])})
    assert FaultKind.LOST in kinds(good(mesh=facts))
    promises = tuple(
        replace(one, key="brief-1") if one.event_id == FAILING else one for one in good().account.promises
    )
    assert kinds(good(mesh=facts, account=replace(good().account, promises=promises))) == []


def test_a_mark_is_held_against_the_history_of_its_time():
    facts = good().mesh[LAB]
    mark = Mark(node=LAB, order=1, head=facts.head, cursors={})
    now = replace(facts, outbox=facts.outbox[:2])
    gone = good(mesh={**good().mesh, LAB: now}, marks=(mark,))
    forgot = [FaultKind.FORGOTTEN]
    assert [kind for kind in kinds(gone) if kind in forgot] == forgot
    put_back = past(lost=facts, base=now, read={})
    assert FaultKind.FORGOTTEN not in kinds(replace(gone, pasts=gave_up(put_back)))
    later = replace(mark, order=put_back.order + 1)
    still = replace(gone, pasts=gave_up(put_back), marks=(later,))
    assert [kind for kind in kinds(still) if kind in forgot] == forgot


def test_what_agents_of_a_clone_were_told_was_asked_for():
    promises = tuple(one for one in good().account.promises if one.event_id != FAILING)
    account = replace(good().account, promises=promises)
    told = Account(promises=tuple(one for one in good().account.promises if one.event_id == FAILING))
    clone = past(node=VPS, way=Way.CLONE, base=good().mesh[VPS], lost=good().mesh[VPS], account=told)
    assert kinds(good(account=account)) == [FaultKind.OUTBOX]
    assert kinds(good(account=account, pasts=gave_up(clone))) == []


def test_who_is_blamed_without_a_reason_breaks_a_run():
    facts = good().mesh
    facts[VPS] = replace(facts[VPS], incidents=opened((ROLLBACK, f"{LAB}/{EPOCH}")))
    assert kinds(good(mesh=facts)) == [FaultKind.FRAMED]


def test_a_journal_that_forgot_is_found():
    facts = good().mesh[VPS]
    head = Head(EPOCH, facts.seq, facts.outbox[-1].digest)
    whole = Mark(node=VPS, head=head, cursors=facts.cursors)
    assert list(check_mark(whole, facts)) == []
    unseen = Head(EPOCH, Seq(99), bytes(32))
    assert [*check_mark(replace(whole, head=unseen), replace(facts, hidden=frozenset({unseen})))] == []
    longer = replace(whole, head=Head(EPOCH, Seq(facts.seq + 1), head.hash))
    other = replace(whole, head=Head(EPOCH, facts.seq, bytes(32)))
    ahead = replace(whole, cursors={LAB: Head(EPOCH, Seq(99), bytes(32))})
    assert [fault.kind for fault in check_mark(longer, facts)] == [FaultKind.FORGOTTEN]
    assert [fault.kind for fault in check_mark(other, facts)] == [FaultKind.FORGOTTEN]
    assert [fault.kind for fault in check_mark(ahead, facts)] == [FaultKind.CURSOR]
