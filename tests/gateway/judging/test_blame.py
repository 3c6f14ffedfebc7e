"""Who had forgotten goes on elsewhere, two histories are told of, and nobody is blamed without a reason."""

import pytest
from msgspec.structs import replace

from gateway.engine.epochs import COPY_RUNS, OWN_FORK, STREAM_EPOCH
from gateway.engine.forks import FORK, RECREATED, ROLLBACK
from gateway.judging.blame import check_blame
from gateway.judging.clocks import Wrong
from gateway.judging.faults import FaultKind
from gateway.judging.pasts import NONE, Pasts, Way
from outbox.chain import Head
from outbox.ids import NodeId, Seq
from outbox.records import Incident
from tests.gateway.judging.bygones import HEAD, SINCE_MS, base, gave_up, opened, past, present, said
from tests.gateway.judging.stories import EPOCH, LAB, MBP, VPS, mesh

CLONE, COPY = past(way=Way.CLONE), past(way=Way.COPY)
OF_LAB = f"{LAB}/{EPOCH}"


def found(now, pasts=NONE, **clocks):
    return [(fault.kind, fault.subject) for fault in check_blame(now, pasts, clocks)]


def told(node: NodeId, incident: Incident):
    """The run with one incident more at some other node."""
    now = present((STREAM_EPOCH, "its new one"))
    return {**now, node: replace(now[node], incidents=(*now[node].incidents, incident))}


def closed(kind: str, at_ms: int = SINCE_MS + 1) -> Incident:
    return replace(opened((kind, OF_LAB))[0], opened_at_ms=at_ms, closed_at_ms=at_ms + 1)


FRAMED = [(FaultKind.FRAMED, LAB)]


@pytest.mark.parametrize("kind", [OWN_FORK, COPY_RUNS, STREAM_EPOCH])
def test_a_node_says_such_things_of_itself_only_with_a_reason(kind: str):
    now = {**mesh(), LAB: replace(mesh()[LAB], incidents=opened((kind, "x")))}
    assert found(now) == FRAMED
    failed = replace(opened((kind, "x"))[0], detail="failed_sync: the disk")
    assert found({**now, LAB: replace(now[LAB], incidents=(failed,))}) == []
    assert found(present((kind, "x")), gave_up()) == []


@pytest.mark.parametrize("kind", [FORK, ROLLBACK, RECREATED])
def test_an_honest_node_is_framed_by_nobody(kind: str):
    assert found({**mesh(), VPS: told(VPS, closed(kind))[VPS]}) == FRAMED
    assert found(told(VPS, closed(kind)), gave_up(COPY)) == []


def test_who_was_put_back_by_command_writes_nothing_twice():
    for kind in (FORK, ROLLBACK):
        assert found(told(VPS, closed(kind)), gave_up()) == FRAMED
    assert found(told(VPS, closed(RECREATED)), gave_up()) == []


def test_blame_comes_after_its_reason_by_clocks_that_may_be_behind():
    early = told(VPS, closed(ROLLBACK, SINCE_MS - 30_000))
    assert found(early, gave_up(COPY)) == FRAMED
    assert found(early, gave_up(COPY), **{VPS: Wrong(behind_ms=60_000)}) == []
    assert found(early, gave_up(COPY), **{LAB: Wrong(behind_ms=60_000)}) == FRAMED


def test_a_fork_that_stays_open_takes_a_node_for_a_liar_that_had_forgotten():
    assert found(told(VPS, opened((FORK, OF_LAB))[0]), gave_up(COPY)) == FRAMED


def test_what_a_history_said_that_was_given_up_counts_as_well():
    blames = replace(mesh()[LAB], incidents=(*opened((ROLLBACK, f"{VPS}/{EPOCH}")),))
    assert found(present(), gave_up(past(lost=blames))) == [(FaultKind.FRAMED, VPS)]


def test_a_restored_node_writes_nothing_more_in_the_epoch_of_its_backup():
    assert found(present(), gave_up()) == []
    assert found(present(epoch=EPOCH, seq=3), gave_up()) == [(FaultKind.OUTBOX, LAB)]
    stays = {**mesh(), LAB: base()}
    assert found(stays, gave_up()) == [(FaultKind.OUTBOX, LAB)]
    before = replace(present()[LAB], outbox=(*base().outbox, said(3, EPOCH), said(1)))
    assert found({**present(), LAB: before}, gave_up()) == [(FaultKind.OUTBOX, LAB)]


def test_nor_does_it_where_nobody_sees_it():
    """What it appends before anybody has told it more is held back, and left behind with that epoch."""
    for seq, faults in ((2, []), (3, [(FaultKind.OUTBOX, LAB)])):
        held = frozenset({Head(EPOCH, Seq(seq), bytes(32))})
        assert found({**present(), LAB: replace(present()[LAB], hidden=held)}, gave_up()) == faults


def test_a_copy_by_hand_goes_on_only_where_nobody_had_read_more():
    stays = present(epoch=EPOCH, seq=3)
    assert found(stays, gave_up(COPY)) == [(FaultKind.UNREPORTED, LAB)]
    assert found(stays, gave_up(replace(COPY, read={VPS: HEAD}))) == []
    elsewhere = Head(present()[LAB].head.epoch, Seq(99), bytes(32))
    assert found(stays, gave_up(replace(COPY, read={VPS: elsewhere}))) == []
    assert found(present(), gave_up(COPY)) == []


def test_who_ran_twice_is_told_once_both_were_shown():
    both = present(epoch=EPOCH, seq=3)
    assert found(both, gave_up(CLONE)) == [(FaultKind.UNREPORTED, LAB)]
    unshown = replace(CLONE, lost=replace(CLONE.lost, unshown={EPOCH: Seq(2)}))
    assert found(both, gave_up(unshown)) == []
    assert found(present((OWN_FORK, "x"), epoch=EPOCH, seq=3), gave_up(CLONE)) == []


def test_what_one_reader_can_prove_all_others_know():
    one = told(VPS, closed(ROLLBACK))
    assert found(one, gave_up(CLONE)) == [(FaultKind.UNREPORTED, LAB)]
    both = {**one, MBP: replace(one[MBP], incidents=(closed(FORK),))}
    assert found(both, gave_up(CLONE)) == []


def test_nobody_waits_for_ever_for_what_others_remember():
    now = present()
    waits = {**now, LAB: replace(now[LAB], doubted=(VPS, NodeId("gone")))}
    assert found(waits, gave_up()) == [(FaultKind.UNFINISHED, LAB)]
    assert found(now, Pasts()) == []
