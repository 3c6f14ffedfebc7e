"""A node that has forgotten what it sent: proofs, a new epoch, and what is carried over into it."""

from copy import deepcopy
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.engine.effects import Appended, CopyRuns, EpochBegan, StreamShown
from gateway.engine.epochs import COPY_RUNS, STREAM_EPOCH
from gateway.engine.inputs import StreamKnown
from gateway.engine.limits import CLAIMS_WAIT_MS, EPOCHS_BEGUN_MAX
from gateway.engine.own_stream import Reason
from outbox.chain import Checkpoint, Head, sign_checkpoint
from outbox.envelope import decode_event, decode_payload
from outbox.ids import Epoch, NodeId, Seq, epoch_ordinal, make_epoch
from outbox.kinds import Kind
from outbox.recall import StreamEpoch
from outbox.records import DeliveryState, TurnState
from stateroom.view import CursorsView, ForkView, NodeView

A, B = NodeId("a"), NodeId("b")
S, T = DeliveryState, TurnState


# --- showing


def test_until_a_peer_has_answered_what_is_appended_is_not_shown(mesh: Any, only: Any) -> None:
    mesh.come_back("a", mesh.store("a"))
    before = mesh.store("a").head()
    mesh.sent("a", "ann", "bob")
    (page,) = only(mesh.nodes["a"].effects, Appended)[-1:]
    assert not page.shown
    assert (mesh.store("a").shown(), mesh.store("a").head().seq) == (before, before.seq + 1)
    effects = mesh.answer("a", by="b")
    assert only(effects, StreamShown) == [StreamShown(A, mesh.store("a").head())]
    assert mesh.store("a").shown() == mesh.store("a").head()
    mesh.sent("a", "ann", "bob")
    assert only(mesh.nodes["a"].effects, Appended)[-1].shown


def test_with_nobody_else_in_the_mesh_everything_is_shown_at_once(world: Any, only: Any) -> None:
    world.members[A] = NodeView(node=A, public_key=b"k" * 32, role="member")
    world.come_back("a", world.store("a"))
    assert only(world.wake("a"), StreamShown)


def test_a_claim_without_proof_holds_an_outbox_back_for_a_while_only(mesh: Any, only: Any) -> None:
    mesh.cursors[NodeId("b")] = CursorsView(
        cursors={A: (mesh.epoch_of("a"), Seq(99))}, head=(Epoch(""), Seq(0))
    )
    mesh.members[NodeId("c")] = NodeView(node=NodeId("c"), public_key=b"k" * 32, role="member")
    mesh.see()
    mesh.come_back("a", mesh.store("a"))
    mesh.tick("a", StreamKnown(NodeId("c"), None))
    mesh.sent("a", "ann", "bob")
    assert not only(mesh.nodes["a"].effects, Appended)[-1].shown
    start_ms = mesh.mono_ms
    while not only(mesh.wake("a"), StreamShown):
        pass
    assert mesh.mono_ms - start_ms == CLAIMS_WAIT_MS
    assert mesh.epoch_of("a") == Epoch("000001-0123456789ab"), "a claim alone begins nothing"


def test_a_failed_commit_forgets_neither_that_it_may_be_shown_nor_that_an_epoch_is_due(
    mesh: Any, only: Any
) -> None:
    mesh.come_back("a", mesh.store("a"), Reason.RESTORE)
    before = mesh.epoch_of("a")
    mesh.tick("a", StreamKnown(B, None), lost=True)
    assert mesh.epoch_of("a") == before
    assert only(mesh.wake("a"), EpochBegan)
    assert epoch_ordinal(mesh.epoch_of("a")) == epoch_ordinal(before) + 1
    mesh.come_back("b", mesh.store("b"))
    mesh.tick("b", StreamKnown(A, None), lost=True)
    assert only(mesh.wake("b"), StreamShown)


# --- forgetting what was sent


def forget_a_message(mesh: Any) -> Any:
    """``a`` sends, ``b`` reads, and ``a`` comes back as it was before."""
    mesh.meet()
    backup = deepcopy(mesh.store("a"))
    event = mesh.sent("a", "ann", "bob")
    mesh.pull("b", "a")
    mesh.come_back("a", backup)
    return event


def test_a_signed_head_that_is_not_in_the_outbox_begins_a_new_epoch(mesh: Any, only: Any) -> None:
    forget_a_message(mesh)
    previous, last = mesh.epoch_of("a"), mesh.store("a").head().seq
    effects = mesh.answer("a", by="b")
    (began,) = only(effects, EpochBegan)
    assert epoch_ordinal(began.identity.epoch) == epoch_ordinal(previous) + 1
    assert mesh.store("a").identity() == began.identity
    (said,) = [event for event in mesh.history("a") if event.kind == Kind.SIGNAL][-2:-1]
    assert decode_payload(said, StreamEpoch) == StreamEpoch(
        previous=previous, last_known=last, reason=Reason.ROLLBACK, remembered=((previous, last),)
    )
    assert (STREAM_EPOCH, began.identity.epoch) in mesh.incidents("a")
    assert only(effects, StreamShown)


def test_readers_go_on_in_the_new_epoch(mesh: Any) -> None:
    forget_a_message(mesh)
    mesh.answer("a", by="b")
    event = mesh.sent("a", "ann", "bob")
    mesh.meet()
    assert mesh.store("b").cursor(A) == mesh.store("a").head()
    assert mesh.delivery("a", event).state is S.ACCEPTED
    mesh.verify()


def test_an_outbox_that_a_peer_knows_as_it_is_goes_on_as_it_was(mesh: Any, only: Any) -> None:
    mesh.sent("a", "ann", "bob")
    mesh.meet()
    mesh.come_back("a", mesh.store("a"))
    effects = mesh.answer("a", by="b")
    assert only(effects, StreamShown)
    assert not only(effects, EpochBegan)


def test_what_this_node_has_said_in_the_room_outlives_its_journal(mesh: Any, only: Any) -> None:
    mesh.meet()
    backup = deepcopy(mesh.store("a"))
    mesh.sent("a", "ann", "bob")
    mesh.publish("a")
    mesh.come_back("a", backup)
    mesh.see("a")
    assert only(mesh.wake("a"), EpochBegan)


def test_the_head_in_the_own_record_is_compared_with_the_chain(mesh: Any, only: Any) -> None:
    mesh.sent("a", "ann", "bob")
    head = mesh.store("a").head()
    said = replace(mesh.members[A], outbox_epoch=head.epoch, head_seq=head.seq, head_hash=head.hash.hex())
    mesh.members[A] = said
    mesh.see("a")
    assert not only(mesh.tick("a"), EpochBegan)
    mesh.members[A] = replace(said, head_hash="00" * 32)
    mesh.see("a")
    assert only(mesh.wake("a"), EpochBegan)


def shows_head(mesh: Any, lost: Head) -> None:
    checkpoint = sign_checkpoint(mesh.view().mesh, A, lost, mesh.nodes["a"].sign)
    mesh.tick("a", StreamKnown(B, checkpoint))


def shows_record(mesh: Any, lost: Head) -> None:
    known = {"outbox_epoch": lost.epoch, "head_seq": lost.seq, "head_hash": lost.hash.hex()}
    mesh.members |= {
        A: NodeView(node=A, public_key=b"", role="member", **known),
        B: NodeView(node=B, public_key=b"", role="member"),
    }
    mesh.see("a")


def shows_cursors(mesh: Any, lost: Head) -> None:
    mesh.cursors[A] = CursorsView(cursors={}, head=(lost.epoch, lost.seq))
    mesh.see("a")


def shows_fork(mesh: Any, lost: Head) -> None:
    mesh.forks[A] = (ForkView(epoch=lost.epoch, seq=lost.seq),)
    mesh.see("a")


def run_on(mesh: Any) -> list[tuple[str, str]]:
    """Let ``a`` begin what is due; each epoch that it has ended, and why. What nobody saw is said again."""
    while mesh.nodes["a"].own.is_due(mesh.epoch_of("a")):
        mesh.tick("a")
    said = [event for event in mesh.history("a") if event.kind == Kind.SIGNAL]
    began = [decode_payload(event, StreamEpoch) for event in said if b"lastKnown" in bytes(event.payload)]
    return sorted({(signal.previous, signal.reason) for signal in began})


@pytest.mark.parametrize("failures", [1, 2])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("shows", [shows_head, shows_record, shows_cursors, shows_fork])
def test_a_failed_sync_does_not_hide_that_a_node_went_back(
    mesh: Any, shows: Any, failures: int, *, restarts: bool
) -> None:
    """Nobody is asked after it. An old copy may have met one before anybody said that it is old."""
    forget_a_message(mesh)
    lost = mesh.store("b").cursor(A)
    for _ in range(failures):
        mesh.come_back("a", mesh.store("a"), Reason.FAILED_SYNC)
        run_on(mesh)
    if restarts:
        mesh.come_back("a", mesh.store("a"))
    for _ in range(3):  # what is asked about once is no reason any more
        shows(mesh, lost)
        began = run_on(mesh)
        assert [reason for _, reason in began] == [Reason.FAILED_SYNC] * failures + [Reason.ROLLBACK]
        assert mesh.store("a").doubts().keys() == {B}
    mesh.come_back("a", mesh.store("a"))
    shows(mesh, lost)
    assert run_on(mesh) == began
    mesh.meet()
    assert mesh.store("a").doubts() == {}
    mesh.verify()


@pytest.mark.parametrize("shows", [shows_head, shows_record, shows_cursors])
def test_what_stands_in_the_outbox_is_no_reason_after_a_failed_sync(mesh: Any, shows: Any) -> None:
    mesh.sent("a", "ann", "bob")
    mesh.pull("b", "a")
    mesh.come_back("a", mesh.store("a"), Reason.FAILED_SYNC)
    run_on(mesh)
    shows(mesh, mesh.store("b").cursor(A))
    assert [reason for _, reason in run_on(mesh)] == [Reason.FAILED_SYNC]
    assert mesh.store("a").doubts() == {}


def test_a_new_epoch_goes_above_all_that_was_heard_of(mesh: Any, only: Any) -> None:
    mesh.come_back("a", mesh.store("a"))
    lost = Head(make_epoch(7, b"\x01" * 6), Seq(3), b"h" * 32)
    shown = sign_checkpoint(mesh.view().mesh, A, lost, mesh.nodes["a"].sign)
    mesh.tick("a", StreamKnown(B, shown))
    (began,) = only(mesh.wake("a"), EpochBegan)
    assert epoch_ordinal(began.identity.epoch) == 8


def test_obligations_without_an_answer_are_sent_again_and_taken_once(mesh: Any) -> None:
    mesh.meet()
    event = mesh.sent("a", "ann", "bob")
    backup = deepcopy(mesh.store("a"))
    mesh.sent("a", "ann", "bob")
    mesh.pull("b", "a")
    mesh.come_back("a", backup)
    mesh.answer("a", by="b")
    row = mesh.delivery("a", event)
    assert (row.state, row.attempt) == (S.EMITTED, 2)
    assert row.seq <= mesh.store("a").head().seq
    mesh.meet()
    assert mesh.delivery("a", event).state is S.ACCEPTED
    assert len(mesh.store("b").ledger(event)) == 1


def test_what_nobody_has_seen_is_said_again(mesh: Any) -> None:
    mesh.meet()
    backup = deepcopy(mesh.store("b"))
    mesh.sent("b", "bob", "ann")
    mesh.pull("a", "b")
    asked = mesh.sent("a", "ann", "bob")
    mesh.come_back("b", backup)
    mesh.pull("b", "a")  # accepted by a node that does not know yet that it has forgotten
    assert mesh.store("b").shown().seq < mesh.store("b").head().seq
    mesh.answer("b", by="a")
    acks = [event for event in mesh.history("b") if event.kind == Kind.ACK and event.corr_id == asked]
    assert [ack.trace.attempt for ack in acks] == [2], "the first one is not shown to anybody"
    mesh.meet()
    assert mesh.delivery("a", asked).state is S.ACCEPTED


def test_what_was_said_several_times_and_never_seen_is_said_once_more(mesh: Any, stranger: Any) -> None:
    """Two attempts of one ACK would both have become the next one, which is no batch that can be kept."""
    mesh.own("eve", "x")
    mesh.meet()
    backup = deepcopy(mesh.store("b"))
    mesh.sent("b", "bob", "ann")
    mesh.pull("a", "b")
    mesh.come_back("b", backup)
    message = stranger.event()
    again = [replace(message, trace=replace(message.trace, attempt=attempt)) for attempt in (2, 3)]
    for event in (message, *again):
        mesh.tick("b", stranger.says(event))
    assert mesh.store("b").shown().seq < mesh.store("b").head().seq
    mesh.answer("b", by="a")
    acks = [event for event in mesh.history("b") if event.corr_id == message.event_id]
    assert [ack.trace.attempt for ack in acks] == [4], "the three before are not shown to anybody"


def test_what_was_sent_and_answered_here_while_nobody_could_see_it_is_said_again(mesh: Any) -> None:
    """Its answers alone would be of an event that stands in no outbox that anybody can read."""
    mesh.live("a", "amy")
    mesh.meet()
    backup = deepcopy(mesh.store("a"))
    mesh.sent("a", "ann", "bob")
    mesh.pull("b", "a")
    mesh.come_back("a", backup)
    accepted, ended = (mesh.sent("a", "ann", "amy") for _ in range(2))
    mesh.settle("a", "amy", ended)
    assert mesh.store("a").shown().seq < mesh.store("a").head().seq
    mesh.answer("a", by="b")
    told = [event.event_id for event in mesh.history("a") if event.kind == Kind.MESSAGE]
    assert {accepted, ended} <= {*told}
    assert len(told) == len({*told}), "once each"
    mesh.meet()
    assert [mesh.delivery("a", event).state for event in (accepted, ended)] == [S.ACCEPTED, S.PROCESSED]
    assert len(mesh.store("a").ledger(ended)) == 1
    acks = [event for event in mesh.history("a") if event.corr_id == ended]
    assert len(acks) == len({ack.event_id for ack in acks}) == 2


@pytest.mark.parametrize(("to", "late"), [("bob", True), ("bob,cid", True), ("gone", True), ("gone", False)])
def test_what_was_given_up_and_never_seen_is_said_all_the_same(mesh: Any, to: str, *, late: bool) -> None:
    """Its dead letter alone would be of an event that stands in no outbox that anybody can read.

    It had expired when the new epoch began, or (not ``late``) waited there for somebody to send it to.
    """
    mesh.live("b", "cid")
    mesh.own("gone", "b")
    mesh.meet()
    backup = deepcopy(mesh.store("a"))
    mesh.sent("a", "ann", "bob")
    mesh.pull("b", "a")
    mesh.come_back("a", backup)
    event = mesh.sent("a", "ann", to, expires_in_ms=60_000)
    assert mesh.store("a").shown().seq < mesh.store("a").head().seq
    mesh.own("gone", "b", active=False)
    mesh.advance(60_000 if late else 1)
    mesh.come_back("a", mesh.store("a"), Reason.RESTORE)
    mesh.answer("a", by="b")
    mesh.advance(60_000)
    mesh.tick("a")
    said = [told.kind for told in mesh.history("a") if event in {told.event_id, told.corr_id}]
    assert said[0] == Kind.MESSAGE
    assert Kind.DEAD_LETTER in said
    assert {row.state for row in mesh.store("a").obligations(event)} == {S.DEAD_LETTER}


def test_an_epoch_that_a_full_disk_refuses_again_and_again_is_no_copy(mesh: Any, only: Any) -> None:
    mesh.come_back("a", mesh.store("a"), Reason.RESTORE)
    for _ in range(2 * EPOCHS_BEGUN_MAX):
        mesh.tick("a", StreamKnown(B, None), lost=True)
    effects = mesh.wake("a")
    assert only(effects, EpochBegan)
    assert not only(effects, CopyRuns)


def test_a_copy_that_never_stops_ends_the_process(mesh: Any, only: Any) -> None:
    for _ in range(EPOCHS_BEGUN_MAX):
        stray = Head(make_epoch(epoch_ordinal(mesh.epoch_of("a")), b"\x01" * 6), Seq(1), b"h" * 32)
        answered = Checkpoint(mesh.view().mesh, A, stray.epoch, stray.seq, stray.hash, b"")
        mesh.tick("a", StreamKnown(B, answered))
        assert only(mesh.wake("a"), EpochBegan)
    last = mesh.epoch_of("a")
    mesh.tick(
        "a", StreamKnown(B, Checkpoint(mesh.view().mesh, A, make_epoch(99, b"\x01" * 6), Seq(1), b"h", b""))
    )
    assert only(mesh.wake("a"), CopyRuns)
    assert mesh.epoch_of("a") == last
    assert (COPY_RUNS, "a") in mesh.incidents("a")


def test_an_answer_in_a_history_that_readers_have_left_is_asked_for_again(mesh: Any) -> None:
    """The home of b ran twice; a read the second one on, and the end of the turn stands in the first."""
    event = mesh.sent("a", "ann", "bob")
    mesh.meet()
    original, twin = mesh.store("b"), deepcopy(mesh.store("b"))
    mesh.advance(mesh.policy.sla_process_ms + 1)
    mesh.tick("a")
    mesh.pull("b", "a")
    mesh.settle("b", "bob", event)
    mesh.come_back("b", twin, Reason.ROLLBACK)
    mesh.answer("b", by="a")
    mesh.pull("a", "b")
    assert mesh.delivery("a", event).state is S.ACCEPTED
    mesh.come_back("b", original)
    mesh.answer("b", by="a")
    assert epoch_ordinal(mesh.epoch_of("b")) == 3
    mesh.meet()
    assert mesh.delivery("a", event).state is S.PROCESSED


@pytest.mark.parametrize("replied", [False, True])
def test_what_is_answered_in_the_tick_in_which_it_is_due_again_is_said_again(
    make_world: Any, stranger: Any, replied: bool
) -> None:
    """A copy of the node had shown it; here it stood where nobody can read it (seed 40120138)."""
    world = make_world("a")
    for name in ("a", "x"):
        world.members[NodeId(name)] = NodeView(node=NodeId(name), public_key=b"k" * 32, role="member")
    world.own("eve", "x")
    world.live("a", "ann")
    backup = deepcopy(world.store("a"))
    world.sent("a", "ann", "eve")
    head = world.store("a").head()
    world.come_back("a", backup)
    event = world.sent("a", "ann", "eve")
    known = sign_checkpoint(world.view().mesh, A, head, world.nodes["a"].sign)
    world.tick("a", StreamKnown(stranger.name, known))
    assert world.nodes["a"].own.is_due(world.epoch_of("a"))
    answers = [stranger.ack(event, status="accepted")]
    if replied:
        reply = replace(stranger.event(), kind=Kind.REPLY, corr_id=event, to_agent_id="ann")
        answers = [reply]
    world.tick("a", stranger.says(*answers, to=("a",)))
    assert not world.nodes["a"].own.is_due(world.epoch_of("a"))
    (row,) = world.store("a").obligations(event)
    assert (row.state, row.attempt) == (S.REPLIED if replied else S.ACCEPTED, 2)
    last = [decode_event(entry.body) for entry in world.pages_of("a")[-1].entries]
    assert [(said.event_id, said.trace.attempt) for said in last if said.event_id == event] == [(event, 2)]
