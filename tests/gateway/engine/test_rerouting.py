"""An owner that stays away: its fallback gets the event, and nobody engages it twice unseen."""

from typing import Any

import pytest
from msgspec import Raw

from gateway.engine import rerouting
from gateway.engine.effects import Handed, Sent
from gateway.engine.inputs import LinkUp, PageRead, Send, SetAgent, StreamHead, ViewChanged
from gateway.engine.own_stream import Reason
from outbox.chain import genesis
from outbox.ids import Epoch, MeshId, NodeId
from outbox.kinds import Kind
from outbox.records import DeliveryState, TurnState

MESH, B = MeshId("mesh-" + "x" * 38), NodeId("b")
EPOCH = Epoch("000001-0123456789ab")
GRACE_MS = 60_000


@pytest.fixture
def guarded(make_world: Any) -> Any:
    """``bob`` lives at ``b`` and names ``c``, which stands in for him; ``ann`` writes from ``a``."""
    world = make_world("a", "b", "c")
    world.live("a", "ann")
    world.live("b", "bob", fallback=("c",), grace_ms=GRACE_MS)
    world.stand_in("c", "bob", "b")
    return world


def go(world: Any, *nodes: str) -> None:
    """Nobody hears of these nodes any more."""
    world.absent = set(nodes)
    world.see("a")


def states(world: Any, event: str) -> dict[str | None, str]:
    return {row.node: str(row.state) for row in world.store("a").obligations(event)}


def test_past_the_grace_the_next_attempt_goes_to_the_fallback(guarded: Any) -> None:
    event = guarded.sent("a", "ann", "bob")
    go(guarded, "b")
    while len(states(guarded, event)) == 1:
        guarded.wake("a")
    assert states(guarded, event) == {"b": "superseded", "c": "emitted"}
    first, second = guarded.said("a", Kind.MESSAGE)
    assert (second.event_id, second.trace.attempt) == (first.event_id, 2)
    assert second.trace.route_decision.reason == "fallback"
    assert guarded.mono_ms >= 5_000 + GRACE_MS
    guarded.pull("c", "a")
    (hand,) = guarded.listen("c", "bob")
    guarded.reply("c", "bob", hand.event_id, lease_id=hand.lease_id)
    guarded.pull("a", "c")
    assert states(guarded, event)["c"] == "replied"
    assert guarded.incidents("a") == []


def test_a_fallback_that_is_no_node_of_the_mesh_is_passed_over(make_world: Any) -> None:
    world = make_world("a", "b", "c")
    world.live("a", "ann")
    world.live("b", "bob", fallback=("nowhere", "c"), grace_ms=GRACE_MS)
    world.stand_in("c", "bob", "b")
    event = world.sent("a", "ann", "bob")
    go(world, "b")
    while len(states(world, event)) == 1:
        world.wake("a")
    assert states(world, event) == {"b": "superseded", "c": "emitted"}


def test_where_no_fallback_is_a_node_of_the_mesh_it_waits_for_its_owner(make_world: Any) -> None:
    world = make_world("a", "b")
    world.live("a", "ann")
    world.live("b", "bob", fallback=("nowhere",), grace_ms=GRACE_MS)
    event = world.sent("a", "ann", "bob")
    go(world, "b")
    world.advance(10 * GRACE_MS)
    world.tick("a")
    other = world.send("a", "ann", "bob")
    assert (states(world, event), other.node) == ({"b": "emitted"}, "b")


def test_what_is_sent_during_a_long_absence_goes_to_the_fallback_at_once(guarded: Any) -> None:
    go(guarded, "b")
    guarded.advance(GRACE_MS)
    answer = guarded.send("a", "ann", "bob")
    assert answer.node == "c"
    guarded.pull("c", "a")
    assert guarded.acks("c", answer.event_id) == ["accepted"]


def test_within_the_grace_or_accepted_it_stays_with_the_owner(guarded: Any) -> None:
    event = guarded.sent("a", "ann", "bob")
    guarded.pull("b", "a")
    guarded.pull("a", "b")
    go(guarded, "b")
    other = guarded.sent("a", "ann", "bob")
    guarded.advance(GRACE_MS - 1)
    guarded.tick("a")
    guarded.absent = set()
    guarded.see("a")
    guarded.advance(GRACE_MS)
    guarded.tick("a")
    assert (states(guarded, event), states(guarded, other)) == ({"b": "accepted"}, {"b": "emitted"})


def test_without_a_fallback_that_is_there_it_waits_for_the_owner(guarded: Any) -> None:
    event = guarded.sent("a", "ann", "bob")
    go(guarded, "b", "c")
    guarded.advance(2 * GRACE_MS)
    guarded.tick("a")
    assert states(guarded, event) == {"b": "emitted"}
    go(guarded, "b")
    assert states(guarded, event) == {"b": "superseded", "c": "emitted"}


def test_an_owner_that_returns_and_reads_both_attempts_engages_neither(guarded: Any, only: Any) -> None:
    event = guarded.sent("a", "ann", "bob")
    go(guarded, "b")
    guarded.advance(GRACE_MS)
    guarded.tick("a")
    guarded.listen("b", "bob")
    head = guarded.store("a").head()
    guarded.tick("b", LinkUp("a", (StreamHead("a", head.epoch, head.seq),)))
    effects = [e for page in guarded.pages("b", "a", 1) for e in _read(guarded, page)]
    assert only(effects, Handed) == []
    assert guarded.row("b", event).state is TurnState.DONE
    assert guarded.acks("b", event) == ["accepted", "refused: superseded"]
    guarded.meet()
    assert states(guarded, event) == {"b": "superseded", "c": "accepted"}
    assert guarded.incidents("a") == []


def _read(world: Any, page: Any) -> Any:
    return world.tick("b", PageRead("a", page))


def _ended_after_it_went_on(world: Any) -> Any:
    """Its owner was away for too long and had it in hand."""
    event = world.sent("a", "ann", "bob")
    world.pull("b", "a")
    (hand,) = world.listen("b", "bob")
    go(world, "b")
    world.advance(GRACE_MS)
    world.tick("a")
    world.settle("b", "bob", event, lease_id=hand.lease_id)
    return event


def test_two_that_engaged_it_are_reported(guarded: Any) -> None:
    event = _ended_after_it_went_on(guarded)
    guarded.pull("c", "a")
    (there,) = guarded.listen("c", "bob")
    guarded.settle("c", "bob", event, lease_id=there.lease_id)
    guarded.meet()
    assert guarded.incidents("a") == [("duplicate_engagement", event)]
    assert states(guarded, event) == {"b": "superseded", "c": "processed"}
    first, second = guarded.store("a").obligations(event)
    assert first.engaged_at_ms is not None
    assert (first.outcome, second.outcome) == ("ok", "ok")


@pytest.mark.parametrize("first", ["b", "c"])
def test_what_an_agent_gave_back_before_it_went_elsewhere_is_reported(guarded: Any, first: str) -> None:
    """Whether the agent had begun with it nobody knows."""
    event = guarded.sent("a", "ann", "bob")
    guarded.pull("b", "a")
    (hand,) = guarded.listen("b", "bob")
    guarded.nack("b", "bob", event, hand.lease_id, delay_ms=60_000)
    go(guarded, "b")
    guarded.advance(GRACE_MS)
    guarded.tick("a")
    guarded.pull("b", "a")
    assert guarded.acks("b", event) == ["accepted", "refused: superseded"]
    guarded.pull("c", "a")
    (there,) = guarded.listen("c", "bob")
    guarded.settle("c", "bob", event, lease_id=there.lease_id)
    for node in (first, "b", "c"):
        guarded.pull("a", node)
    assert ("duplicate_engagement", event) in guarded.incidents("a")
    assert states(guarded, event) == {"b": "superseded", "c": "processed"}


@pytest.mark.parametrize("known", [True, False], ids=["read before", "never read"])
def test_two_that_engaged_it_are_reported_also_where_the_owner_begins_a_new_epoch(
    guarded: Any, *, known: bool
) -> None:
    """Its end stands in an epoch that the sender does not read: it is asked for."""
    guarded.rumour()
    event = _ended_after_it_went_on(guarded)
    guarded.pull("c", "b")
    guarded.pull("c", "a")
    (there,) = guarded.listen("c", "bob")
    guarded.settle("c", "bob", event, lease_id=there.lease_id)
    guarded.come_back("b", guarded.store("b"), Reason.RESTORE)
    guarded.answer("b", by="c")
    if known:
        guarded.store("a").begin()
        guarded.store("a").put_cursor(B, genesis(MESH, B, EPOCH))
        guarded.store("a").commit()
    page = guarded.store("b").read(genesis(MESH, B, guarded.epoch_of("b")), 1000, 1 << 30)
    guarded.tick("a", PageRead(B, page))  # nobody has for it what lies between
    guarded.meet()
    assert ("duplicate_engagement", event) in guarded.incidents("a")


def test_a_fallback_that_does_not_answer_for_the_agent_is_not_asked_again(make_world: Any) -> None:
    world = make_world("a", "b", "c")
    world.live("a", "ann")
    world.live("b", "bob", fallback=("c",), grace_ms=0)
    event = world.sent("a", "ann", "bob")
    go(world, "b")
    world.tick("a")
    world.pull("c", "a")
    world.pull("a", "c")
    assert world.acks("c", event) == ["refused: not_owner"]
    while states(world, event)["b"] != "emitted":
        world.wake("a")
    assert states(world, event) == {"b": "emitted", "c": "superseded"}
    go(world, "b")
    world.advance(GRACE_MS)
    world.tick("a")
    assert states(world, event)["b"] == "emitted"


def test_a_fallback_engages_only_what_was_sent_on_to_it(guarded: Any, stranger: Any) -> None:
    guarded.own("eve", "x")
    guarded.see()
    guarded.tick("c", stranger.says(stranger.event(), to=("c",)))
    (ack,) = guarded.said("c", Kind.ACK)
    assert guarded.acks("c", ack.corr_id) == ["refused: not_owner"]
    guarded.own("bob", "b")
    guarded.see("c")
    go(guarded, "b")
    guarded.advance(GRACE_MS)
    event = guarded.sent("a", "ann", "bob")
    guarded.pull("c", "a")
    assert guarded.acks("c", event) == []


def test_an_answer_goes_back_to_the_node_that_asked(guarded: Any) -> None:
    question = guarded.sent("c", "bob", "ann")
    guarded.pull("a", "c")
    assert guarded.row("a", question).state is TurnState.QUEUED, "a fallback may speak for the agent"
    (hand,) = guarded.listen("a", "ann")
    answer = guarded.reply("a", "ann", question, lease_id=hand.lease_id)
    assert answer.node == "c"
    guarded.pull("c", "a")
    assert guarded.acks("c", answer.event_id) == ["accepted"]


def test_a_policy_can_be_changed_where_the_agent_lives(guarded: Any) -> None:
    changed = guarded.ask("b", SetAgent(70, "bob", grace_ms=5, groups=("ops",)))
    assert (changed.fallback, changed.grace_ms, changed.groups) == (("c",), 5, ("ops",))
    changed = guarded.ask("b", SetAgent(71, "bob", fallback=()))
    assert (changed.fallback, changed.groups) == ((), ("ops",))
    assert guarded.ask("c", SetAgent(72, "bob", grace_ms=5)).code == "not_found"


@pytest.mark.parametrize(("agent", "owner", "code"), [("bob", "a", "not_found"), ("ann", "a", "not_found")])
def test_a_node_stands_in_only_for_whom_names_it(guarded: Any, agent: str, owner: str, code: str) -> None:
    guarded.leave("c", "bob")
    assert guarded.stand_in("c", agent, owner).code == code


def test_a_long_queue_is_sent_on_in_pieces(guarded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerouting, "DUE_MAX", 2)
    events = [guarded.sent("a", "ann", "bob") for _ in range(5)]
    go(guarded, "b")
    guarded.advance(GRACE_MS)
    guarded.tick("a")
    assert sum(len(states(guarded, event)) == 2 for event in events) == 2
    guarded.wake("a")
    guarded.wake("a")
    assert all(states(guarded, event) == {"b": "superseded", "c": "emitted"} for event in events)


def test_an_absence_never_uses_up_the_last_attempt(guarded: Any) -> None:
    event = guarded.sent("a", "ann", "bob")
    for absent in ("b", "c", "b", "c", "b"):
        go(guarded, absent)
        guarded.advance(GRACE_MS)
        guarded.tick("a", Send(req=1, agent="ann", to="ann", payload=b"1"))
    rows = guarded.store("a").obligations(event)
    assert max(row.tries for row in rows) == guarded.policy.retry.attempts_max
    assert DeliveryState.DEAD_LETTER not in {row.state for row in rows}


def test_what_is_sent_while_the_fallback_returns_goes_on_in_the_next_tick(guarded: Any) -> None:
    """The view comes after the message, and its first attempt is not in the outbox yet."""
    go(guarded, "b", "c")
    guarded.advance(GRACE_MS)
    guarded.tick("a")
    guarded.absent = {"b"}
    back = ViewChanged(guarded.view())
    effects = guarded.tick("a", Send(req=7, agent="ann", to="bob", payload=Raw(b"1")), back)
    (event,) = [effect.event_id for effect in effects if isinstance(effect, Sent)]
    guarded.wake("a")
    assert states(guarded, event) == {"b": "superseded", "c": "emitted"}


def asked_again_when_done(guarded: Any) -> str:
    """``b`` has done it when ``c`` is asked; ``a`` reads so, and asks ``b`` once more when ``c`` is gone."""
    event: str = guarded.sent("a", "ann", "bob")
    guarded.pull("b", "a")
    (hand,) = guarded.listen("b", "bob")
    guarded.settle("b", "bob", event, lease_id=hand.lease_id)
    go(guarded, "b")
    guarded.advance(GRACE_MS)
    guarded.tick("a")
    guarded.pull("a", "b")
    assert states(guarded, event) == {"b": "superseded", "c": "emitted"}
    go(guarded, "c")
    guarded.advance(GRACE_MS)
    guarded.tick("a")
    assert states(guarded, event) == {"b": "emitted", "c": "superseded"}
    return event


def test_who_had_done_it_and_is_asked_again_is_believed(guarded: Any) -> None:
    """Its ACKs are known from when it was superseded: repeated, they end what is owed now."""
    event = asked_again_when_done(guarded)
    guarded.pull("b", "a")
    guarded.pull("a", "b")
    assert states(guarded, event) == {"b": "processed", "c": "superseded"}
    assert guarded.incidents("a") == []


def test_who_had_done_it_and_never_says_so_again_leaves_a_dead_letter_that_tells_it(guarded: Any) -> None:
    """Who sends it again should know (seed 7305344: the node went back in between)."""
    event = asked_again_when_done(guarded)
    while states(guarded, event)["b"] != "dead_letter":
        guarded.wake("a")
    assert set(guarded.incidents("a")) == {("answered_after_dead_letter", event), ("dead_letter", event)}


def test_a_list_that_names_one_agent_is_sent_on_and_withdrawn_as_if_it_were_its_name(guarded: Any) -> None:
    """Its owner engaged it beside the fallback (seed 70285)."""
    event = guarded.sent("a", "ann", "bob,bob")
    go(guarded, "b")
    guarded.advance(GRACE_MS)
    guarded.tick("a")
    assert states(guarded, event) == {"b": "superseded", "c": "emitted"}
    guarded.pull("b", "a")
    assert guarded.acks("b", event) == ["accepted", "refused: superseded"]


@pytest.mark.parametrize("dealt", [True, False])
def test_a_reply_that_two_nodes_may_have_dealt_is_reported_by_the_first(guarded: Any, dealt: bool) -> None:
    """``bob`` has asked from ``b``; the answer comes there, and later goes to ``c`` as well."""
    question = guarded.sent("b", "bob", "ann")
    guarded.pull("a", "b")
    (asked,) = guarded.listen("a", "ann")
    answer = guarded.reply("a", "ann", question, lease_id=asked.lease_id).event_id
    guarded.pull("b", "a")
    if dealt:
        hands = [turn for turn in guarded.listen("b", "bob", credit=5) if turn.event_id == answer]
        assert len(hands) == 1
    go(guarded, "b")
    guarded.advance(GRACE_MS)
    while states(guarded, answer) != {"b": "superseded", "c": "emitted"}:
        guarded.wake("a")
    guarded.pull("b", "a")
    assert guarded.incidents("b") == []
    kinds = [row.kind for row in guarded.store("b").incidents(open_only=False)]
    assert ("possible_duplicate" in kinds) is dealt


@pytest.mark.parametrize("guard", [("c",), ()])
def test_a_reply_in_hand_is_reported_when_the_rest_of_an_epoch_was_passed_unread(
    guarded: Any, guard: tuple[str, ...]
) -> None:
    """It may say that the reply went to the fallback too (seed 40100367)."""
    question = guarded.sent("b", "bob", "ann")
    guarded.pull("a", "b")
    (asked,) = guarded.listen("a", "ann")
    answer = guarded.reply("a", "ann", question, lease_id=asked.lease_id).event_id
    guarded.pull("b", "a")
    assert answer in [turn.event_id for turn in guarded.listen("b", "bob", credit=5)]
    guarded.sent("a", "ann", "bob")
    guarded.come_back("a", guarded.store("a"), Reason.RESTORE)
    guarded.answer("a", by="b")
    guarded.own("bob", "b", fallback=guard)
    guarded.see("b")
    guarded.tick("b", PageRead("a", guarded.pages_of("a")[-1]))
    told = guarded.store("b").incident("possible_duplicate", answer)
    assert (told is not None) is bool(guard)
