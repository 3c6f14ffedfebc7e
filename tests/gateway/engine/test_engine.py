"""Whole conversations between engines, over both stores, with every input and effect through JSON."""

from typing import Any

import msgspec

from gateway.engine.effects import (
    AgentChanged,
    Appended,
    CursorMoved,
    Handed,
    Refused,
    Sent,
    Settled,
    Subscribed,
    Ticketed,
)
from gateway.engine.inputs import AddAgent, Grant, PageRead, RemoveAgent, Send, Settle, Subscribe, Unsubscribe
from gateway.engine.knocks import Exchange, Renew
from outbox.envelope import decode_event
from outbox.kinds import Kind
from outbox.records import DeliveryState, TurnState


def test_a_message_is_accepted_handed_over_replied_to_and_processed(either: Any, only: Any) -> None:
    world = either
    sent = world.send("a", "ann", "bob")
    assert (sent.agent, sent.node, sent.duplicate) == ("bob", "b", False)
    assert sent.thread_id == sent.event_id
    assert world.delivery("a", sent.event_id).state is DeliveryState.EMITTED
    assert world.listen("b", "bob") == []
    effects = world.pull("b", "a")
    (hand,) = only(effects, Handed)
    assert only(effects, CursorMoved)[0].head == world.store("a").head()
    assert (hand.subscriber, hand.delivery_count, hand.resumed, hand.lease_ms) == ("socket", 1, False, 30_000)
    assert bytes(decode_event(hand.body).payload) == b'{"n":1}'
    assert world.acks("b", sent.event_id) == ["accepted"]
    world.advance(40)
    world.pull("a", "b")
    row = world.delivery("a", sent.event_id)
    assert (row.state, row.accepted_at_ms) == (DeliveryState.ACCEPTED, world.wall_ms)

    world.advance(60)
    answer = world.reply("b", "bob", sent.event_id, lease_id=hand.lease_id)
    assert (answer.agent, answer.node, answer.thread_id) == ("ann", "a", sent.event_id)
    assert world.row("b", sent.event_id).state is TurnState.DONE
    assert world.acks("b", sent.event_id) == ["accepted", "ok"]
    assert not world.listen("a", "ann")
    (question_back,) = only(world.pull("a", "b"), Handed)
    reply = decode_event(question_back.body)
    assert (reply.kind, reply.corr_id, reply.trace.hops) == (Kind.REPLY, sent.event_id, 1)
    row = world.delivery("a", sent.event_id)
    assert row.state is DeliveryState.REPLIED
    assert row.processed_at_ms == row.replied_at_ms == world.wall_ms
    assert row.engaged_at_ms == world.row("b", sent.event_id).engaged_at_ms
    world.meet()
    assert world.delivery("b", answer.event_id).state is DeliveryState.ACCEPTED
    assert world.delivery("b", answer.event_id).next_at_ms is None
    assert world.settle("a", "ann", answer.event_id, lease_id=question_back.lease_id).duplicate is False
    assert world.acks("a", answer.event_id) == ["accepted"]
    world.verify()


def test_between_two_agents_of_one_node_everything_happens_in_one_tick(world: Any, only: Any) -> None:
    world.live("a", "amy")
    world.listen("a", "amy")
    effects = world.tick("a", Send(req=99, agent="ann", to="amy", payload=msgspec.Raw(b"1")))
    (sent,) = only(effects, Sent)
    (hand,) = only(effects, Handed)
    (appended,) = only(effects, Appended)
    assert [decode_event(entry.body).kind for entry in appended.page.entries] == ["message", "ack"]
    assert world.delivery("a", sent.event_id).state is DeliveryState.ACCEPTED
    world.settle("a", "amy", sent.event_id, lease_id=hand.lease_id)
    assert world.delivery("a", sent.event_id).state is DeliveryState.PROCESSED


def test_answers_come_before_the_pages_and_pages_after_all_of_them(world: Any, only: Any) -> None:
    requests = [Send(req=n, agent="ann", to="bob", payload=msgspec.Raw(b"1")) for n in (1, 2)]
    effects = world.tick("a", *requests)
    assert [type(effect).__name__ for effect in effects] == ["Sent", "Sent", "Appended"]


def test_a_tick_without_work_changes_nothing(world: Any) -> None:
    head = world.store("a").head()
    assert world.tick("a") == []
    assert world.store("a").head() == head
    assert world.nodes["a"].engine.next_wake_ms(world.now()) is None


def test_a_commit_that_fails_leaves_nothing_behind(either: Any) -> None:
    world = either
    head = world.store("a").head()
    send = Send(req=7, agent="ann", to="bob", payload=msgspec.Raw(b"1"), idempotency_key="k")
    assert world.tick("a", send, AddAgent(8, "amy", b"\x01"), lost=True) == []
    assert world.store("a").head() == head
    assert world.store("a").count_deliveries() == {}
    assert world.store("a").remembered("ann", "k") is None
    assert [row.name for row in world.store("a").agents()] == ["ann"]
    assert isinstance(world.ask("a", send), Sent)

    world.tick("a", RemoveAgent(9, "ann"), lost=True)
    assert [row.name for row in world.store("a").agents()] == ["ann"]
    assert world.store("b").count_received() == {}
    page = PageRead("a", world.page("b", "a"))
    world.tick("b", page, lost=True)
    assert world.store("b").cursor("a") is None
    assert world.store("b").count_received() == {}
    assert world.said("b") == []
    world.tick("b", page)
    assert world.store("b").count_received() == {"queued": 1}
    world.verify()


def test_who_does_not_live_here_cannot_send_answer_or_listen(world: Any) -> None:
    event = world.sent("a", "ann", "bob")
    assert world.send("b", "ann", "bob").code == "not_found"
    assert world.reply("a", "bob", event).code == "not_found"
    asked = world.ask("a", Subscribe(req=1, subscriber="s", agent="bob", session="r"))
    assert isinstance(asked, Refused)
    assert (asked.code, asked.retryable) == ("not_found", False)
    assert asked.hint


def test_a_second_subscription_of_one_socket_gets_one_answer(world: Any) -> None:
    first = Subscribe(req=1, subscriber="s", agent="ann", session="r")
    assert world.ask("a", first) == Subscribed(1, "s")
    assert world.ask("a", msgspec.structs.replace(first, req=2)).code == "conflict"
    assert world.tick("a", Unsubscribe("s"), Unsubscribe("never-was")) == []
    assert world.ask("a", msgspec.structs.replace(first, req=3)) == Subscribed(3, "s")


def test_credit_is_refused_when_it_is_none_or_nobodys(world: Any) -> None:
    assert world.ask("a", Grant(1, "nobody", 5)).code == "conflict"
    world.listen("a", "ann")
    assert world.ask("a", Grant(2, "socket", 0)).code == "invalid_credit"
    assert world.tick("a", Grant(3, "socket", 5)) == []


def test_agents_come_and_go_with_rising_owner_epochs(world: Any) -> None:
    assert world.ask("a", AddAgent(1, "bob", b"")).code == "name_taken"
    assert world.ask("a", AddAgent(2, "ann", b"")).code == "name_taken"
    assert world.ask("a", RemoveAgent(3, "amy")).code == "not_found"
    assert world.ask("a", RemoveAgent(4, "ann")) == AgentChanged(4, "ann", 1, active=False)
    world.own("ann", "a", 1, active=False)
    world.see()
    assert world.ask("b", AddAgent(5, "ann", b"")) == AgentChanged(5, "ann", 2, active=True)


def test_invites_and_tickets_are_decided_by_the_desk_in_the_same_tick(world: Any) -> None:
    assert isinstance(world.ask("a", Renew(1, b"{}", "127.0.0.1")), Ticketed)
    refused = world.ask("a", Exchange(2, b"{}", "127.0.0.1"))
    assert (refused.code, refused.hint) == ("not_found", "ask for a new one")


def test_an_engine_built_anew_goes_on_where_the_store_stands(either: Any, only: Any) -> None:
    world = either
    event = world.sent("a", "ann", "bob", idempotency_key="once")
    world.restart("a")
    again = world.send("a", "ann", "bob", idempotency_key="once")
    assert (again.event_id, again.duplicate) == (event, True)
    world.listen("b", "bob", session="run-1")
    (hand,) = only(world.pull("b", "a"), Handed)
    world.restart("b")
    (resumed,) = world.listen("b", "bob", session="run-1")
    assert (resumed.lease_id, resumed.delivery_count, resumed.resumed) == (hand.lease_id, 1, True)
    done = Settle(req=5, agent="bob", event_id=event, lease_id=hand.lease_id)
    assert world.ask("b", done) == Settled(5, event, duplicate=False)
    world.restart("b")
    assert world.ask("b", done) == Settled(5, event, duplicate=True)
    assert world.listen("b", "bob") == []
    world.meet()
    assert world.delivery("a", event).state is DeliveryState.PROCESSED
