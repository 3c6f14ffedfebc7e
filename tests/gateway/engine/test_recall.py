"""A node that has forgotten what it did: others are asked, nothing that was ended is done again."""

from copy import deepcopy
from enum import IntEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.courier.limits import CourierLimits
from gateway.engine import telling
from gateway.engine.doubts import POSSIBLE_DUPLICATE, EndDoubts
from gateway.engine.effects import EpochBegan, Handed
from gateway.engine.inputs import FloorRead, PageRead, Prune, Settle, StreamKnown, Unsubscribe
from gateway.engine.limits import RECALL_AGAIN_MS
from gateway.engine.own_stream import Reason
from gateway.engine.policy import Policy, Retention
from gateway.engine.recall import DUPLICATE_ENGAGEMENT
from outbox.chain import genesis
from outbox.envelope import Signal, decode_payload, encode_payload
from outbox.ids import EventId, MeshId, NodeId, make_epoch
from outbox.kinds import Kind, Outcome
from outbox.memory import MemoryStore
from outbox.recall import RECALL, Ended, Recalled
from outbox.records import DeliveryState, Identity, TurnState
from stateroom.view import NodeView

MESH = MeshId("mesh-" + "x" * 38)
A, B = NodeId("a"), NodeId("b")
S, T = DeliveryState, TurnState


# --- forgetting what was done


def restored(mesh: Any, *, ended: bool) -> Any:
    """``b`` accepts (and ends) a message, and comes back from a backup of before."""
    mesh.meet()
    backup = deepcopy(mesh.store("b"))
    event = mesh.sent("a", "ann", "bob")
    mesh.pull("b", "a")
    if ended:
        mesh.settle("b", "bob", event)
    mesh.pull("a", "b")
    mesh.come_back("b", backup, Reason.RESTORE)
    return event


def test_what_was_ended_is_not_done_again(mesh: Any) -> None:
    event = restored(mesh, ended=True)
    mesh.answer("b", by="a")
    mesh.pull("b", "a")
    assert mesh.row("b", event).state is T.QUEUED
    assert mesh.listen("b", "bob") == [], "nothing of a is dealt before a has answered"
    mesh.meet()
    row = mesh.row("b", event)
    assert (row.state, row.outcome, row.delivery_count) == (T.DONE, Outcome.OK, 0)
    assert mesh.store("b").doubts() == {}
    assert mesh.delivery("a", event).state is S.PROCESSED
    assert (POSSIBLE_DUPLICATE, event) not in mesh.incidents("b")


def test_what_was_accepted_only_is_done_again_and_reported(mesh: Any) -> None:
    event = restored(mesh, ended=False)
    assert mesh.delivery("a", event).state is S.ACCEPTED
    mesh.answer("b", by="a")
    mesh.meet()
    (turn,) = mesh.listen("b", "bob")
    assert turn.event_id == event
    assert (POSSIBLE_DUPLICATE, event) in mesh.incidents("b")
    mesh.settle("b", "bob", event, lease_id=turn.lease_id)
    mesh.advance(60_000)
    mesh.tick("a")
    mesh.meet()
    assert mesh.delivery("a", event).state is S.PROCESSED


def test_an_acceptance_that_was_forgotten_is_asked_for_again(mesh: Any) -> None:
    event = restored(mesh, ended=False)
    mesh.answer("b", by="a")
    mesh.pull("a", "b")
    assert mesh.delivery("a", event).state is S.RETRY_PENDING
    mesh.meet()
    mesh.wake("a")
    mesh.meet()
    assert mesh.delivery("a", event).state is S.ACCEPTED
    assert len(mesh.store("b").ledger(event)) == 1


def test_a_turn_that_was_open_in_the_backup_waits_for_its_sender(mesh: Any) -> None:
    event = mesh.sent("a", "ann", "bob")
    mesh.meet()
    backup = deepcopy(mesh.store("b"))
    mesh.settle("b", "bob", event)
    mesh.meet()
    mesh.come_back("b", backup, Reason.RESTORE)
    mesh.answer("b", by="a")
    assert mesh.listen("b", "bob") == []
    mesh.meet()
    assert mesh.row("b", event).state is T.DONE
    assert mesh.row("b", event).delivery_count == 0


def test_a_lease_of_the_backup_is_taken_back(mesh: Any) -> None:
    event = mesh.sent("a", "ann", "bob")
    mesh.meet()
    (turn,) = mesh.listen("b", "bob", session="run-1")
    backup = deepcopy(mesh.store("b"))
    mesh.settle("b", "bob", event, lease_id=turn.lease_id)
    mesh.meet()
    mesh.come_back("b", backup, Reason.RESTORE)
    mesh.answer("b", by="a")
    assert mesh.listen("b", "bob", session="run-1") == [], "the session may not resume it either"
    mesh.meet()
    assert mesh.row("b", event).outcome is Outcome.OK


def test_a_reply_within_the_node_that_waited_for_room_is_reported_too(mesh: Any) -> None:
    """The backup has no turn of it yet: it was dealt and ended behind it, or it was not."""
    mesh.live("b", "ben")
    event = mesh.sent("b", "bob", "ben")
    (turn,) = mesh.listen("b", "ben")
    for _ in range(mesh.limits.room_for(2)):
        mesh.sent("b", "ben", "bob")
    reply = mesh.reply("b", "ben", event, lease_id=turn.lease_id).event_id
    assert mesh.delivery("b", reply).error == "inbox_full"
    mesh.come_back("b", deepcopy(mesh.store("b")), Reason.RESTORE)
    mesh.answer("b", by="a")
    assert (POSSIBLE_DUPLICATE, reply) in mesh.incidents("b")


def test_what_comes_again_only_behind_the_answer_is_reported_too(mesh: Any, stranger: Any) -> None:
    """Who has read nothing of a node begins in its epoch of now: the answer is before what comes again."""
    mesh.own("eve", "x")
    mesh.see()
    mesh.tick("b", stranger.says(stranger.event()))
    mesh.come_back("b", mesh.store("b"), Reason.RESTORE)
    mesh.answer("b", by="a")
    since, message = mesh.store("b").doubts()[NodeId("x")], stranger.event()
    said = encode_payload(Recalled(since=since, accepted=(message.event_id,)))
    mesh.tick("b", stranger.says(stranger.event(kind=Kind.SIGNAL, source_agent_id=None, payload=said)))
    mesh.tick("b", stranger.says(message))
    assert (POSSIBLE_DUPLICATE, message.event_id) in mesh.incidents("b")
    assert mesh.row("b", message.event_id).state is T.QUEUED


def waits_for(mesh: Any, stranger: Any) -> Any:
    """``b`` was restored, and only ``x`` has not answered yet; returns what it asks ``x`` by."""
    mesh.own("eve", "x")
    mesh.see()
    mesh.tick("b", stranger.says(stranger.event()))
    mesh.come_back("b", mesh.store("b"), Reason.RESTORE)
    mesh.answer("b", by="a")
    return mesh.store("b").doubts()[NodeId("x")]


def test_what_the_copy_of_a_node_did_not_know_is_reported_when_the_node_answers(
    mesh: Any, stranger: Any
) -> None:
    """The first answer came from a home that ran twice, and from the younger one (seed 30276)."""
    since, known, message = waits_for(mesh, stranger), stranger.event(), stranger.event()
    for accepted in ((), (message.event_id, known.event_id)):
        said = encode_payload(Recalled(since=since, accepted=accepted))
        mesh.tick("b", stranger.says(stranger.event(kind=Kind.SIGNAL, source_agent_id=None, payload=said)))
        assert NodeId("x") not in mesh.store("b").doubts()
        if not accepted:
            mesh.tick("b", stranger.says(known))
    mesh.tick("b", stranger.says(message))
    assert (POSSIBLE_DUPLICATE, message.event_id) in mesh.incidents("b")
    assert (POSSIBLE_DUPLICATE, known.event_id) not in mesh.incidents("b"), "it was accepted since"


@pytest.mark.parametrize("dealt", ["ended", "in hand", "waiting"])
def test_what_was_dealt_after_the_answer_of_a_copy_is_reported_when_the_node_knows_its_end(
    mesh: Any, stranger: Any, dealt: str
) -> None:
    """(seed 40130090)"""
    since, again = waits_for(mesh, stranger), stranger.event()
    ended = (Ended(ref=again.event_id, outcome=Outcome.OK),)
    for answer in (Recalled(since=since), Recalled(since=since, ended=ended)):
        said = encode_payload(answer)
        mesh.tick("b", stranger.says(stranger.event(kind=Kind.SIGNAL, source_agent_id=None, payload=said)))
        if not answer.ended:
            mesh.tick("b", stranger.says(again))
            hands = [] if dealt == "waiting" else mesh.listen("b", "bob")
            for hand in hands if dealt == "ended" else ():
                mesh.settle("b", "bob", hand.event_id, lease_id=hand.lease_id)
    assert ((POSSIBLE_DUPLICATE, again.event_id) in mesh.incidents("b")) is (dealt != "waiting")


def passed(mesh: Any) -> None:
    """``a`` goes on behind all that ``b`` has written, and says so; ``b`` has read ``a`` to its end."""
    (*_, page) = mesh.pages_of("b")
    mesh.tick("a", FloorRead(B, page.checkpoint))
    mesh.rumour()
    mesh.pull("b", "a")


def questions(mesh: Any) -> int:
    signals = [event for event in mesh.history("b") if event.kind == Kind.SIGNAL]
    return sum(decode_payload(event, Signal).signal == RECALL for event in signals)


@pytest.mark.parametrize("restarts", [False, True])
def test_who_has_passed_the_question_unread_is_asked_again(mesh: Any, *, restarts: bool) -> None:
    """It went back itself, or began at a floor: the question would be waited for until an operator comes."""
    event = restored(mesh, ended=True)
    mesh.answer("b", by="a")
    passed(mesh)
    if restarts:
        mesh.restart("b")
        mesh.meet()
        mesh.rumour()
    assert questions(mesh) == 1
    mesh.advance(RECALL_AGAIN_MS)
    mesh.tick("b")
    assert questions(mesh) == 2
    mesh.meet()
    assert mesh.store("b").doubts() == {}
    assert mesh.row("b", event).delivery_count == 0
    assert mesh.row("b", event).state is T.DONE


def test_who_has_not_read_the_question_is_not_asked_again(mesh: Any) -> None:
    restored(mesh, ended=True)
    mesh.answer("b", by="a")
    mesh.rumour()
    mesh.advance(10 * RECALL_AGAIN_MS)
    mesh.tick("b")
    assert questions(mesh) == 1


def test_who_never_answers_is_asked_ever_more_rarely(mesh: Any) -> None:
    restored(mesh, ended=True)
    mesh.answer("b", by="a")
    for minutes in (1, 2, 4):
        passed(mesh)
        before = questions(mesh)
        mesh.advance(minutes * RECALL_AGAIN_MS - 1)
        mesh.tick("b")
        assert questions(mesh) == before
        mesh.advance(1)
        mesh.tick("b")
        assert questions(mesh) == before + 1


def test_what_was_accepted_in_an_epoch_that_its_node_does_not_know_is_sent_again(mesh: Any) -> None:
    """A copy of the home took it, in an epoch of its own (seed 60065)."""
    mesh.meet()
    original = deepcopy(mesh.store("b"))
    mesh.come_back("b", mesh.store("b"), Reason.RESTORE)
    mesh.answer("b", by="a")
    event = mesh.sent("a", "ann", "bob")
    mesh.meet()
    assert mesh.delivery("a", event).state is S.ACCEPTED
    mesh.come_back("b", original)
    mesh.answer("b", by="a")
    mesh.tick("b")
    mesh.come_back("b", mesh.store("b"), Reason.RESTORE)
    mesh.answer("b", by="a")
    page = mesh.store("b").read(genesis(MESH, B, mesh.epoch_of("b")), 1000, 1 << 30)
    mesh.tick("a", PageRead(B, page))
    assert mesh.delivery("a", event).state is S.RETRY_PENDING


def test_doubts_outlive_a_restart_and_time(mesh: Any) -> None:
    event = restored(mesh, ended=True)
    mesh.answer("b", by="a")
    mesh.pull("b", "a")
    mesh.come_back("b", mesh.store("b"))
    mesh.answer("b", by="a")
    assert mesh.listen("b", "bob") == []
    mesh.advance(3_600_000)
    mesh.tick("b")
    assert mesh.row("b", event).state is T.QUEUED
    assert mesh.row("b", event).delivery_count == 0


def test_without_peers_nothing_is_waited_for_and_everything_reported(mesh: Any) -> None:
    event = mesh.sent("a", "ann", "bob")
    mesh.meet()
    mesh.come_back("b", deepcopy(mesh.store("b")), Reason.RESTORE, ask=False)
    mesh.wake("b")
    assert mesh.store("b").doubts() == {}
    assert (POSSIBLE_DUPLICATE, event) in mesh.incidents("b")
    assert [turn.event_id for turn in mesh.listen("b", "bob")] == [event]


def test_local_turns_of_a_backup_are_reported(mesh: Any) -> None:
    mesh.live("b", "bea")
    event = mesh.sent("b", "bob", "bea")
    mesh.meet()
    mesh.come_back("b", deepcopy(mesh.store("b")), Reason.RESTORE)
    mesh.answer("b", by="a")
    assert (POSSIBLE_DUPLICATE, event) in mesh.incidents("b")


def dealt_again(mesh: Any) -> tuple[EventId, Handed]:
    """What b had ended is handed out once more, from an old copy of its home."""
    event = mesh.sent("a", "ann", "bob")
    mesh.meet()
    backup = deepcopy(mesh.store("b"))
    mesh.settle("b", "bob", event)
    mesh.meet()
    mesh.come_back("b", backup)
    (turn,) = mesh.listen("b", "bob")
    return event, turn


def test_what_was_done_twice_before_anybody_knew_is_reported(mesh: Any) -> None:
    """An old copy of the home was put back by hand, and an agent was quicker than the peers."""
    event, turn = dealt_again(mesh)
    mesh.settle("b", "bob", event, lease_id=turn.lease_id)
    mesh.answer("b", by="a")
    mesh.meet()
    assert (DUPLICATE_ENGAGEMENT, event) in mesh.incidents("b")


def test_what_ends_again_in_the_tick_that_brings_the_answer_is_reported(mesh: Any) -> None:
    """Seed 32169."""
    event, turn = dealt_again(mesh)
    mesh.answer("b", by="a")
    mesh.pull("a", "b")
    ends = Settle(req=10_000, agent="bob", event_id=event, lease_id=turn.lease_id)
    mesh.tick("b", ends, PageRead(A, mesh.page("b", "a")))
    assert mesh.store("b").doubts() == {}
    assert (DUPLICATE_ENGAGEMENT, event) in mesh.incidents("b")


def test_what_an_agent_had_once_more_and_gave_back_is_reported(mesh: Any) -> None:
    event, turn = dealt_again(mesh)
    mesh.nack("b", "bob", event, turn.lease_id, delay_ms=60_000)
    mesh.answer("b", by="a")
    mesh.meet()
    assert mesh.row("b", event).state is T.DONE
    assert (POSSIBLE_DUPLICATE, event) in mesh.incidents("b")


def test_what_an_agent_has_in_hand_once_more_is_taken_away_when_its_end_is_known(mesh: Any) -> None:
    event, turn = dealt_again(mesh)
    mesh.answer("b", by="a")
    mesh.meet()
    assert (DUPLICATE_ENGAGEMENT, event) in mesh.incidents("b")
    assert mesh.row("b", event).state is T.DONE
    mesh.advance(10 * 60_000)
    mesh.tick("b")
    assert mesh.row("b", event).delivery_count == turn.delivery_count, "its lease ran out"


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("back", ["nack", "lease"])
def test_what_comes_back_from_a_hand_is_not_dealt_before_its_sender_has_answered(
    mesh: Any, back: str, restarts: bool
) -> None:
    event, turn = dealt_again(mesh)
    mesh.answer("b", by="a")
    assert mesh.store("b").doubts().keys() == {A}
    if restarts:
        mesh.restart("b")
        (turn,) = mesh.listen("b", "bob")
        assert turn.resumed, "who has it keeps it"
    if back == "nack":
        mesh.nack("b", "bob", event, turn.lease_id)
    mesh.advance(10 * 60_000)
    assert not [effect for effect in mesh.tick("b") if isinstance(effect, Handed)]
    mesh.meet()
    row = mesh.row("b", event)
    assert (row.state, row.outcome, row.delivery_count) == (T.DONE, Outcome.OK, turn.delivery_count)


class Known(IntEnum):
    """What the copy of a home knows of a message."""

    ITS_END = 0
    ITS_LEASE = 1
    ITS_TURN = 2
    NOTHING = 3


class Fate(NamedTuple):
    """What b knew of a message when its home was copied, and what ended when."""

    known: Known
    before: bool
    """It ended before the copy was put back: a has read that, and b has forgotten it."""
    again: bool
    """And behind it."""


FATES = st.builds(Fate, st.sampled_from(Known), st.booleans(), st.booleans())


def goes_on(make_world: Any, fates: list[Fate]) -> tuple[Any, list[EventId]]:
    """``b`` is put back by hand and meets ``c`` first, which knows nothing of it: nobody tells b that it has
    gone back before all that is dealt is ended, and c has read it.
    """
    world = make_world("a", "b", "c", limits=CourierLimits(max_depth=100, max_deliveries=100))
    world.live("a", "ann")
    world.live("b", "bob")
    for name in ("a", "b", "c"):
        world.members[NodeId(name)] = NodeView(node=NodeId(name), public_key=b"k" * 32, role="member")
    world.see()
    order = sorted(range(len(fates)), key=lambda number: fates[number].known)
    events: dict[int, EventId] = {}
    for number in order:
        if fates[number].known is not Known.NOTHING:
            events[number] = world.sent("a", "ann", "bob")
    end_some(world, [events[number] for number in events if fates[number].known is Known.ITS_END])
    hold(world, [events[number] for number in events if fates[number].known is Known.ITS_LEASE])
    backup = deepcopy(world.store("b"))
    for number in order:
        if fates[number].known is Known.NOTHING:
            events[number] = world.sent("a", "ann", "bob")
    end_some(world, [events[number] for number in order if fates[number].before])
    for _ in range(40):
        world.sent("b", "bob", "ann")  # a has read more of this history than there is of the other
    world.pull("a", "b")
    world.come_back("b", backup)
    world.tick("b", StreamKnown(NodeId("c"), None))
    end_some(world, [events[number] for number in order if fates[number].again])
    return world, [events[number] for number in range(len(fates))]


def hold(world: Any, events: list[EventId]) -> None:
    """bob has these in hand, and gives all others back."""
    world.pull("b", "a")
    turns = world.listen("b", "bob", credit=100)
    world.tick("b", Unsubscribe("socket"))
    for turn in turns:
        if turn.event_id not in events:
            world.nack("b", "bob", turn.event_id, turn.lease_id)


def end_some(world: Any, events: list[EventId]) -> None:
    """b reads what a has sent; of what is open there these end."""
    hold(world, events)
    for event in events:
        row = world.row("b", event)
        if row.state is T.LEASED:
            world.settle("b", "bob", event, lease_id=row.lease_id)


def unnamed(**said: Any) -> Ended:
    """As a version said it that did not keep which ACK it had read."""
    return Ended(**{name: value for name, value in said.items() if name != "by"})


def told_of_two(world: Any) -> set[EventId]:
    return {EventId(subject) for kind, subject in world.incidents("b") if kind == DUPLICATE_ENGAGEMENT}


def ended_twice(fates: list[Fate], events: list[EventId]) -> set[EventId]:
    pairs = zip(fates, events, strict=True)
    return {event for fate, event in pairs if fate.known is not Known.ITS_END and fate.before and fate.again}


@pytest.mark.parametrize("epochs", [0, 1, 2])
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fates=st.lists(FATES, min_size=1, max_size=6))
@example(fates=[Fate(Known.NOTHING, before=True, again=True)])
def test_what_was_ended_twice_is_reported_whoever_has_read_the_second_end(
    make_world: Any, epochs: int, fates: list[Fate]
) -> None:
    """Seed 1014504. Whether a node has read an end says nothing when it has gone back as well, and b may have
    begun epochs before it knew."""
    world, events = goes_on(make_world, fates)
    for reason in (*[Reason.FAILED_SYNC] * epochs, None):
        world.pull("c", "b")
        world.come_back("b", world.store("b"), reason)
        world.tick("b", StreamKnown(NodeId("c"), None))
        world.tick("b")
    world.pull("c", "b")
    assert len(world.store("b").ended_epochs()) == epochs
    world.nodes["b"].own.forgot(world.epoch_of("b"))  # what a shows is not in its outbox
    world.tick("b")
    world.meet()
    assert world.store("b").doubts() == {}
    assert told_of_two(world) == ended_twice(fates, events)


def test_of_a_sender_that_names_no_ack_the_end_that_others_have_seen_counts(
    make_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older version. Nothing that ended once is reported as ended twice."""
    fates = [Fate(known, before=True, again=again) for known in Known for again in (False, True)]
    world, events = goes_on(make_world, fates)
    world.nodes["b"].own.forgot(world.epoch_of("b"))
    monkeypatch.setattr(telling, "Ended", unnamed)
    world.tick("b")
    world.meet()
    assert world.store("b").doubts() == {}
    assert told_of_two(world) <= ended_twice(fates, events)


def test_a_failed_sync_begins_an_epoch_and_doubts_nobody(mesh: Any, only: Any) -> None:
    event = mesh.sent("a", "ann", "bob")
    mesh.meet()
    mesh.come_back("b", mesh.store("b"), Reason.FAILED_SYNC)
    assert only(mesh.answer("b", by="a"), EpochBegan)
    assert mesh.store("b").doubts() == {}
    assert [turn.event_id for turn in mesh.listen("b", "bob")] == [event]


def twin_ends(mesh: Any, event: EventId, twin: Any) -> None:
    """A copy of the home of b ends a turn as well, and a has read that one before the other."""
    original = mesh.nodes["b"].own, mesh.store("b")
    mesh.come_back("b", twin)
    mesh.tick("b", StreamKnown(NodeId("c"), None))
    (turn,) = mesh.listen("b", "bob")
    mesh.settle("b", "bob", event, lease_id=turn.lease_id)
    mesh.pull("a", "b")
    own, store = original
    mesh.nodes["b"].own, mesh.nodes["b"].store = own, store
    mesh.restart("b")


@pytest.mark.parametrize("noted", [None, *Reason])
def test_what_a_copy_ends_as_well_is_asked_about_whatever_the_start_was_told(
    mesh: Any, noted: Reason | None
) -> None:
    """A note is about what was before the start; a copy that was made since makes everything uncertain."""
    mesh.come_back("b", mesh.store("b"), noted)
    mesh.answer("b", by="a")
    mesh.meet()
    first = mesh.epoch_of("b")
    event = mesh.sent("a", "ann", "bob")
    mesh.meet()
    twin = deepcopy(mesh.store("b"))
    mesh.settle("b", "bob", event)
    twin_ends(mesh, event, twin)
    mesh.answer("b", by="a")
    assert mesh.epoch_of("b") != first
    mesh.meet()
    assert mesh.store("b").doubts() == {}
    assert (DUPLICATE_ENGAGEMENT, event) in mesh.incidents("b")


def test_what_is_in_hand_when_a_copy_is_found_stays_there(mesh: Any) -> None:
    """Only the leases of a backup are nobody's."""
    mesh.come_back("b", mesh.store("b"), Reason.RESTORE)
    mesh.answer("b", by="a")
    mesh.meet()
    event = mesh.sent("a", "ann", "bob")
    mesh.meet()
    (turn,) = mesh.listen("b", "bob")
    mesh.nodes["b"].own.forgot(mesh.epoch_of("b"))
    mesh.tick("b")
    assert mesh.store("b").doubts().keys() == {A}
    assert mesh.row("b", event).lease_id == turn.lease_id
    mesh.settle("b", "bob", event, lease_id=turn.lease_id)
    assert mesh.row("b", event).outcome is Outcome.OK


def test_who_proves_something_is_asked_although_nobody_was_to_be(mesh: Any) -> None:
    """``gateway restore --without-peers`` is about the backup."""
    mesh.come_back("b", mesh.store("b"), Reason.RESTORE, ask=False)
    mesh.answer("b", by="a")
    assert mesh.store("b").doubts() == {}
    mesh.nodes["b"].own.forgot(mesh.epoch_of("b"))
    mesh.tick("b")
    assert mesh.store("b").doubts().keys() == {A}
    mesh.meet()
    assert mesh.store("b").doubts() == {}


def test_a_backup_of_a_node_that_was_still_asking_asks_about_all_of_it(mesh: Any) -> None:
    """Its own outbox is not certain up to its end: what stands there was perhaps ended before as well."""
    event, turn = dealt_again(mesh)
    mesh.settle("b", "bob", event, lease_id=turn.lease_id)
    mesh.answer("b", by="a")
    assert mesh.store("b").doubts().keys() == {A}
    mesh.come_back("b", deepcopy(mesh.store("b")), Reason.RESTORE)
    mesh.answer("b", by="a")
    mesh.meet()
    assert mesh.store("b").doubts() == {}
    assert (DUPLICATE_ENGAGEMENT, event) in mesh.incidents("b")


def test_who_is_asked_by_two_epochs_at_once_answers_each_of_them_whole(mesh: Any) -> None:
    """The epoch of a restore was written already, and another one follows it before anybody is asked."""
    event = mesh.sent("a", "ann", "bob")
    mesh.meet()
    backup = deepcopy(mesh.store("b"))
    mesh.settle("b", "bob", event)
    mesh.meet()
    mesh.come_back("b", backup, Reason.RESTORE)
    mesh.tick("b")
    mesh.nodes["b"].own.forgot(mesh.epoch_of("b"))
    mesh.answer("b", by="a")
    assert len(mesh.store("b").ended_epochs()) == 2
    mesh.listen("b", "bob")
    mesh.meet()
    assert mesh.store("b").doubts() == {}
    assert (mesh.row("b", event).state, mesh.row("b", event).delivery_count) == (T.DONE, 0)


@pytest.mark.parametrize("failures", [1, 2])
@pytest.mark.parametrize("read", [False, True])
def test_a_question_that_a_failed_sync_leaves_behind_is_asked_again(
    mesh: Any, failures: int, *, read: bool
) -> None:
    """Seed 266 with failed syncs. Readers go on in the next epoch, also those that had not read it."""
    event, turn = dealt_again(mesh)
    local = mesh.sent("b", "bob", "bob")
    mesh.settle("b", "bob", event, lease_id=turn.lease_id)
    mesh.answer("b", by="a")
    if read:
        mesh.pull("a", "b")
    told = [(POSSIBLE_DUPLICATE, local), (POSSIBLE_DUPLICATE, mesh.sent("b", "bob", "bob"))]
    for _ in range(failures):
        mesh.come_back("b", mesh.store("b"), Reason.FAILED_SYNC)
        mesh.answer("b", by="a")
    mesh.meet()
    assert mesh.store("b").doubts() == {}
    assert (DUPLICATE_ENGAGEMENT, event) in mesh.incidents("b")
    assert [mesh.incidents("b").count(one) for one in told] == [1, 0], "what came since was not forgotten"


def test_an_answer_to_another_epoch_clears_nothing(mesh: Any) -> None:
    restored(mesh, ended=True)
    mesh.answer("b", by="a")
    mesh.pull("a", "b")
    store = mesh.store("b")
    store.begin()
    store.doubt(A, make_epoch(9, b"\x09" * 6))
    store.commit()
    mesh.pull("b", "a")
    assert store.doubts() == {A: make_epoch(9, b"\x09" * 6)}


# --- of many


def forgetful(make_world: Any, counting: Any, sent: int, rows: int, local: int = 0) -> Any:
    """``b`` has had so many messages and ended the first half of them and every other one since: which it has
    forgotten."""
    world = make_world("b", limits=CourierLimits(max_depth=1_000), policy=Policy(errand_rows=rows))
    world.join("a", counting(MemoryStore(Identity(MESH, A, world.epoch_of("b")))))
    world.live("a", "ann")
    world.live("b", "bob", "bea")
    for name in (A, B):
        world.members[name] = NodeView(node=name, public_key=b"k" * 32, role="member")
    world.see()
    for _ in range(local):
        world.sent("b", "bob", "bea")
    world.events = []
    for half in range(2):
        if half:
            world.backup = deepcopy(world.store("b"))
        world.events += [world.sent("a", "ann", "bob") for _ in range(sent // 2)]
        world.pull("b", "a")
        for event in world.events[half * sent // 2 :: 1 + half]:
            world.settle("b", "bob", event)
        world.pull("a", "b")
    world.come_back("b", counting(world.backup), Reason.RESTORE)
    return world


def work_off(world: Any, *, restarts: bool) -> None:
    """Until nothing is left to do for any of both."""
    for _ in range(1_000):
        for name in ("a", "b"):
            if restarts:
                world.restart(name)
            world.tick(name)
        world.meet()
        if not any(world.store(name).errands() for name in ("a", "b")) and not world.store("b").doubts():
            return
    raise AssertionError("it does not end")


def known(world: Any) -> Any:
    """What ``b`` makes of each message, and what it reports."""
    rows = [world.store("b").ledger(event) for event in world.events]
    reported = {subject for kind, subject in world.incidents("b") if kind == POSSIBLE_DUPLICATE}
    states = [[(row.state, row.outcome, row.delivery_count) for row in found] for found in rows]
    return states, [event in reported for event in world.events]


@pytest.mark.parametrize("restarts", [False, True])
def test_who_asks_is_answered_in_parts_and_knows_the_same(
    make_world: Any, counting: Any, monkeypatch: pytest.MonkeyPatch, *, restarts: bool
) -> None:
    monkeypatch.setattr(telling, "LOOKED_PAST", 1)
    most, ends = [], []
    for sent, rows in ((40, 5), (160, 5), (160, 1_000)):
        world = forgetful(make_world, counting, sent, rows)
        world.answer("b", by="a")
        world.store("a").most = 0
        world.pull("a", "b")
        while world.store("a").errands():
            if restarts:
                world.restart("a")
            world.tick("a")
        most.append(world.store("a").most)
        work_off(world, restarts=restarts)
        ends.append(known(world))
    assert most[1] <= most[0] < most[2]
    assert ends[1] == ends[2]
    assert any(reported for reported in ends[1][1])


def test_what_is_asked_again_while_it_is_told_is_not_told_twice(
    make_world: Any, counting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who hears of an end twice takes it for a second one."""
    monkeypatch.setattr(telling, "LOOKED_PAST", 1)
    world = forgetful(make_world, counting, 40, 5)
    world.answer("b", by="a")
    world.rumour()
    world.pull("a", "b")
    world.rumour()
    assert world.store("a").errands()
    world.advance(RECALL_AGAIN_MS)
    world.tick("b")
    world.pull("a", "b")
    work_off(world, restarts=False)
    told = [decode_payload(event, Recalled) for event in world.history("a") if event.kind == Kind.SIGNAL]
    ended = [each.ref for answer in told for each in answer.ended]
    assert len(ended) == len({*ended})


def test_nothing_is_forgotten_before_it_is_told(
    make_world: Any, counting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telling, "LOOKED_PAST", 1)
    world = forgetful(make_world, counting, 40, 5)
    world.answer("b", by="a")
    world.pull("a", "b")
    world.policy = replace(world.policy, retention=Retention(entries_max=1))
    world.restart("a")
    while world.store("a").errands():
        world.tick("a", Prune(req=1, force=True))
        assert (world.store("a").floor() is None) is bool(world.store("a").errands())
    assert world.store("a").floor() is not None or world.ask("a", Prune(req=2, force=True)).floor > 0


@pytest.mark.parametrize("restarts", [False, True])
def test_an_operator_who_waits_no_longer_has_all_reported_in_parts(
    make_world: Any, counting: Any, *, restarts: bool
) -> None:
    most, ends = [], []
    for sent, rows in ((40, 5), (160, 5), (160, 1_000)):
        world = forgetful(make_world, counting, sent, rows)
        world.answer("b", by="a")
        world.pull("b", "a")
        world.store("b").most = 0
        assert world.ask("b", EndDoubts(700)).nodes == (A,)
        while world.store("b").errands():
            assert world.store("b").doubts() == {A: world.epoch_of("b")}
            if restarts:
                world.restart("b")
            world.tick("b")
        most.append(world.store("b").most)
        assert world.store("b").doubts() == {}
        ends.append(known(world)[1])
    assert most[1] <= most[0] < most[2]
    assert ends[1] == ends[2]
    assert all(ends[1][80:])


def test_what_comes_before_the_question_is_out_is_asked_about_too(make_world: Any, counting: Any) -> None:
    """It is read again, and this node may have ended it before it forgot (seed 88230081)."""
    world = forgetful(make_world, counting, 40, 1, local=5)
    world.answer("b", by="a")
    while world.store("b").errands():
        world.pull("b", "a")
        world.tick("b")
    work_off(world, restarts=False)
    ended = [event for event in world.events[20::2] if world.row("b", event).state is T.DONE]
    assert ended == world.events[20::2]
    assert all(world.row("b", event).delivery_count == 0 for event in ended)


@pytest.mark.parametrize("restarts", [False, True])
def test_an_answer_of_many_is_heard_in_parts_and_nobody_believed_before_its_end(
    make_world: Any, counting: Any, *, restarts: bool
) -> None:
    """All that ``a`` has said stands in one page."""
    most, ends = [], []
    for sent, rows in ((40, 5), (160, 5), (160, 1_000)):
        world = forgetful(make_world, counting, sent, rows)
        world.answer("b", by="a")
        world.run_errands("b", restarts=False)
        world.pull("b", "a")
        world.pull("a", "b")
        world.run_errands("a", restarts=False)
        world.store("b").most = 0
        world.tick("b", PageRead(A, world.page("b", "a", 10_000)))
        assert bool(world.store("b").errands()) is (rows < sent)
        while world.store("b").errands():
            if restarts:
                world.restart("b")
            assert world.store("b").doubts().keys() == {A}
            world.tick("b")
        most.append(world.store("b").most)
        assert world.store("b").doubts() == {}
        ends.append(known(world))
    assert ends[1] == ends[2]
    assert most[1] < most[2] // 3
