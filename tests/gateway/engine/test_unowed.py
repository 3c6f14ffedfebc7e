"""The end of one obligation to a node that is out; the rest is in ``test_farewell``."""

from typing import Any

from outbox.ids import NodeId
from outbox.records import DeliveryState


def test_what_is_due_at_a_node_that_is_out_ends_whatever_it_waited_for(make_world: Any) -> None:
    world = make_world("a", "b")
    world.live("a", "ann")
    world.live("b", "bob")
    world.revoke("b", None)
    world.see("a")
    world.tick("a")
    world.left.discard("b")
    out, world.out = world.out, {}
    world.see("a")
    event = world.sent("a", "ann", "bob")
    world.left.add("b")
    world.out = out
    world.see("a")
    while world.delivery("a", event).state is not DeliveryState.DEAD_LETTER:
        world.wake("a")
    assert world.delivery("a", event).error == "node_revoked"


def test_a_reply_that_was_accepted_owes_nothing_more(make_world: Any) -> None:
    world = make_world("a", "b")
    world.live("a", "ann")
    world.live("b", "bob")
    event = world.sent("b", "bob", "ann")
    world.pull("a", "b")
    (hand,) = world.listen("a", "ann")
    reply = world.reply("a", "ann", event, lease_id=hand.lease_id).event_id
    world.pull("b", "a")
    world.pull("a", "b")
    world.revoke("b", world.store("a").signed_cursor(NodeId("b")))
    world.see("a")
    world.tick("a")
    assert world.delivery("a", reply).state is DeliveryState.ACCEPTED
