from typing import Any

import pytest

from auth import gate
from auth.errors import NodeMismatch, RateLimited, RoomForbidden
from auth.gate import check_rooms, new_ticket
from auth.limits import NONCE_LIFE_MS
from auth.members import nobody
from auth.tickets import TicketStatus
from outbox.ids import NodeId

# The world and node fixtures are built by tests/auth/conftest.py.
World = Any
Node = Any


def test_rooms_are_asked_for_exactly() -> None:
    assert check_rooms(("state", "pipe"), ("pipe", "cursors", "state")) == ("pipe", "state")
    with pytest.raises(RoomForbidden):
        check_rooms(("state", "pipe"), ("state",))


def test_a_free_name_and_a_new_key_fit(world: World, mbp: Node) -> None:
    world.gatekeeper.gate.check_owner(mbp.name, mbp.key.public, nobody)


def test_a_name_keeps_its_key(world: World, mbp: Node, make_key: Any, key_book: Any) -> None:
    door, key = world.gatekeeper.gate, mbp.key.public
    world.join(mbp)
    door.check_owner(mbp.name, key, nobody)
    for node, other, records in (
        ("mbp", make_key("other").public, {}),
        ("lab", key, {}),
        ("mbp", key, {"mbp": make_key("other").public}),
        ("vps", key, {}),
    ):
        with pytest.raises(NodeMismatch):
            door.check_owner(NodeId(node), other, key_book(records))


@pytest.mark.parametrize("limit", ["NONCES_MAX", "TICKETS_MAX"])
def test_a_full_store_refuses_rather_than_forgets(
    limit: str, make_world: Any, mbp: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world()
    monkeypatch.setattr(gate, limit, 2)
    _, token = world.invite()
    for _ in range(2):
        world.exchange(mbp, token)
    before = world.state()
    with pytest.raises(RateLimited) as caught:
        world.exchange(mbp, token)
    assert caught.value.retry_after_ms > 0
    assert world.state() == before
    # What fills it goes away by itself.
    world.now_ms += NONCE_LIFE_MS
    assert world.upgrade(mbp, world.exchange(mbp, token).ws_ticket).first


def test_only_a_ticket_that_is_out_can_be_voided(world: World, mbp: Node) -> None:
    door = world.gatekeeper.gate
    ticket = new_ticket(
        mbp.name, mbp.key.public, ("state",), invite=None, now_ms=world.now_ms, entropy=world.entropy()
    )
    with world.database.transaction():
        door.ledger.put_ticket(ticket)
        door.void(ticket.jti)
        door.void("tkt_unknown")
    assert door.ledger.ticket(ticket.jti).status is TicketStatus.VOID
    world.join(mbp)
    used = world.gatekeeper.invites()[0].reservation.ticket
    with world.database.transaction():
        door.void(used)
    assert door.ledger.ticket(used).status is TicketStatus.USED


def test_repr_shows_no_key(world: World) -> None:
    door = world.gatekeeper.gate
    assert repr(door.nonce_key)[2:20] not in repr(door)
    assert door.certificate not in repr(door)
