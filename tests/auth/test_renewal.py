import json
from typing import Any

import pytest

from auth.errors import AuthError, NodeMismatch, ReplayDetected, RoomForbidden, TicketAlreadyUsed

# The world and node fixtures are built by tests/auth/conftest.py.
World = Any
Node = Any


def refused(world: World, body: bytes, error: type[AuthError], key_of: Any = lambda _: None) -> None:
    before = world.state()
    with pytest.raises(AuthError) as caught:
        world.send_renew(body, key_of)
    assert type(caught.value) is error
    assert world.state() == before


def test_a_member_renews_by_its_key(world: World, mbp: Node) -> None:
    world.join(mbp)
    answer = world.renew(mbp, ("cursors", "pipe"))
    admission = world.upgrade(mbp, answer.ws_ticket, "pipe")
    assert (admission.first, admission.room, admission.session_id) == (False, "pipe", answer.session_id)
    with pytest.raises(TicketAlreadyUsed):
        world.upgrade(mbp, answer.ws_ticket, "pipe")


def test_a_member_is_known_after_a_restart(world: World, mbp: Node) -> None:
    world.join(mbp)
    world.start("boot-2")
    assert world.upgrade(mbp, world.renew(mbp).ws_ticket).node == "mbp"


def test_each_ticket_opens_once(world: World, mbp: Node) -> None:
    world.join(mbp)
    tickets = [world.renew(mbp).ws_ticket for _ in range(10)]
    assert [world.upgrade(mbp, ticket).first for ticket in tickets] == [False] * 10


def test_a_node_admitted_elsewhere_is_known_by_its_record(world: World, mbp: Node, key_book: Any) -> None:
    records = key_book({"mbp": mbp.key.public})
    answer = world.renew(mbp, ("pipe",), records)
    assert world.upgrade(mbp, answer.ws_ticket, "pipe").key == mbp.key.public
    assert world.ledger.members() == []


def test_strangers_and_other_keys_do_not_renew(
    world: World, mbp: Node, make_node: Any, key_book: Any
) -> None:
    thief = make_node("mbp", "another key")
    refused(world, mbp.joiner.renew(world.challenge(mbp), world.now_ms), NodeMismatch)
    world.join(mbp)
    refused(world, thief.joiner.renew(world.challenge(thief), world.now_ms), NodeMismatch)
    records = key_book({"mbp": thief.key.public})
    for node in (mbp, thief):
        refused(world, node.joiner.renew(world.challenge(node), world.now_ms), NodeMismatch, records)


def test_a_proof_of_an_exchange_does_not_renew(world: World, mbp: Node) -> None:
    world.join(mbp)
    _, token = world.invite()
    trusted = world.challenge(mbp)
    body = json.loads(mbp.joiner.renew(trusted, world.now_ms))
    body["nodeProof"] = json.loads(mbp.joiner.exchange(trusted, token, world.now_ms))["nodeProof"]
    refused(world, json.dumps(body).encode(), NodeMismatch)


def test_a_renewal_is_taken_once(world: World, mbp: Node) -> None:
    world.join(mbp)
    body = mbp.joiner.renew(world.challenge(mbp), world.now_ms)
    world.send_renew(body)
    refused(world, body, ReplayDetected)


def test_rooms_are_those_of_the_membership(world: World, mbp: Node) -> None:
    world.join(mbp, rooms=("state",))
    refused(world, mbp.joiner.renew(world.challenge(mbp), world.now_ms, ("pipe",)), RoomForbidden)
    assert world.renew(mbp).rooms == ("state",)


def test_rooms_that_are_not_served_here_are_refused(world: World, mbp: Node, key_book: Any) -> None:
    body = mbp.joiner.renew(world.challenge(mbp), world.now_ms, ("secrets",))
    refused(world, body, RoomForbidden, key_book({"mbp": mbp.key.public}))
