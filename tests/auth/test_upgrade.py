"""A ticket for a socket: every refusal, in order, and that the ticket still works once afterwards."""

from typing import Any

import msgspec
import pytest

from auth.errors import (
    AuthError,
    ExpiredTicket,
    InvalidTicket,
    NodeMismatch,
    RoomForbidden,
    TicketAlreadyUsed,
    TokenAlreadyUsed,
)
from auth.invites import InviteStatus
from auth.messages import read_proof_header, read_ticket_header
from auth.proofs import SocketProof, sign_proof, ticket_hash
from auth.tickets import TicketStatus, mint_ticket
from outbox.ids import NodeId

# The world and node fixtures are built by tests/auth/conftest.py.
World = Any
Node = Any
PATH = "/ansible/yjs/state"


@pytest.fixture
def ticket(world: World, mbp: Node) -> str:
    _, token = world.invite()
    return world.exchange(mbp, token).ws_ticket


def refused(world: World, error: type[AuthError], ticket: str, proof: str, **place: str) -> None:
    before = world.state()
    with pytest.raises(AuthError) as caught:
        world.send_upgrade(ticket, proof, **place)
    assert type(caught.value) is error
    assert world.state() == before


def test_a_ticket_opens_one_socket(world: World, mbp: Node, ticket: str) -> None:
    assert world.upgrade(mbp, ticket).first
    for _ in range(3):
        refused(world, TicketAlreadyUsed, ticket, world.socket_proof(mbp, ticket))


def test_the_headers_of_the_joiner_are_those_that_are_read(world: World, mbp: Node, ticket: str) -> None:
    headers = mbp.joiner.upgrade_headers(world.name, ticket, PATH, world.now_ms)
    assert set(headers) == {"Authorization", "Ansible-Node-Proof"}
    shown = read_ticket_header([headers["Authorization"]])
    assert world.send_upgrade(shown, read_proof_header([headers["Ansible-Node-Proof"]])).node == "mbp"


def test_no_ticket_is_an_invalid_one(world: World, mbp: Node, ticket: str) -> None:
    for text in ("", "x", "a.b.c", ticket[:-1], ticket + "=", ticket.replace(".", "..", 1), ticket + "\n"):
        refused(world, InvalidTicket, text, world.socket_proof(mbp, ticket))
    assert world.upgrade(mbp, ticket).first


def test_time_is_judged_to_the_millisecond(world: World, mbp: Node, ticket: str) -> None:
    world.now_ms += 45_000
    refused(world, ExpiredTicket, ticket, world.socket_proof(mbp, ticket))
    world.now_ms += 1000
    refused(world, ExpiredTicket, ticket, "")
    world.now_ms -= 1001
    assert world.upgrade(mbp, ticket).first
    world.now_ms += 1
    refused(world, ExpiredTicket, ticket, world.socket_proof(mbp, ticket))


def test_tickets_of_another_gateway_or_key_open_nothing(
    world: World, mbp: Node, ticket: str, make_world: Any
) -> None:
    other = make_world("lab")
    _, token = other.invite()
    foreign = other.exchange(mbp, token).ws_ticket
    refused(world, InvalidTicket, foreign, world.socket_proof(mbp, foreign))
    gate = world.gatekeeper.gate
    row = next(row for row in [world.ledger.ticket(jti_of(world))] if row is not None)
    for key in (other.gatekeeper.gate.ticket_key, world.root, world.key, mbp.key):
        forged = mint_ticket(row, world.name, key, gate.boot)
        refused(world, InvalidTicket, forged, world.socket_proof(mbp, forged))
    assert world.upgrade(mbp, ticket).first


def jti_of(world: World) -> str:
    return world.gatekeeper.invites()[-1].reservation.ticket


def test_a_well_signed_ticket_must_say_what_its_row_says(world: World, mbp: Node, ticket: str) -> None:
    gate = world.gatekeeper.gate
    row = world.ledger.ticket(jti_of(world))
    for changes in (
        {"rooms": ("cursors", "pipe", "state")},
        {"node": NodeId("lab")},
        {"invite": None},
        {"jkt": world.key.public.jkt},
        {"issued_at_s": row.issued_at_s - 1},
        {"jti": "tkt_unknown"},
    ):
        text = mint_ticket(msgspec.structs.replace(row, **changes), world.name, gate.ticket_key, gate.boot)
        refused(world, InvalidTicket, text, world.socket_proof(mbp, text))
    assert world.upgrade(mbp, ticket).first


def test_a_restart_voids_what_was_outstanding(world: World, mbp: Node, ticket: str) -> None:
    world.start("boot-2")
    refused(world, InvalidTicket, ticket, world.socket_proof(mbp, ticket))


def test_a_proof_is_needed_for_this_very_upgrade(
    world: World, mbp: Node, ticket: str, make_node: Any, make_key: Any
) -> None:
    good = SocketProof(htu=PATH, ath=ticket_hash(ticket), node="mbp", gw="vps", iat=0)
    trusted = world.challenge(mbp)
    exchange_proof = mbp.joiner.renew(trusted, world.now_ms).decode().split('"nodeProof":"')[1].split('"')[0]
    proofs = [
        "",
        "x.y.z",
        exchange_proof,
        sign_proof(good, make_key("another key")),
        *(
            sign_proof(msgspec.structs.replace(good, **{field: "other"}), mbp.key)
            for field in ("htu", "ath", "node", "gw")
        ),
    ]
    for proof in proofs:
        refused(world, NodeMismatch, ticket, proof)
    refused(world, NodeMismatch, ticket, sign_proof(good, mbp.key), path="/ansible/pipe")
    assert world.upgrade(mbp, ticket).first


@pytest.mark.parametrize("iat", [0, -1, 4_102_444_800])
def test_its_clock_is_not_judged(iat: int, world: World, mbp: Node, ticket: str) -> None:
    good = SocketProof(htu=PATH, ath=ticket_hash(ticket), node="mbp", gw="vps", iat=iat)
    assert world.send_upgrade(ticket, sign_proof(good, mbp.key)).first


def test_a_ticket_opens_its_rooms_only(world: World, mbp: Node, ticket: str) -> None:
    for room in ("pipe", "cursors", "", "STATE", "state/"):
        path = f"/ansible/yjs/{room}"
        refused(world, RoomForbidden, ticket, world.socket_proof(mbp, ticket, path), room=room, path=path)
    assert world.upgrade(mbp, ticket).first


def test_checks_come_in_order(world: World, mbp: Node, ticket: str) -> None:
    """Each request is wrong in this way and in every later one."""
    world.upgrade(mbp, ticket)
    world.now_ms += 45_000
    refused(world, InvalidTicket, ticket + "A", "", room="x")
    refused(world, ExpiredTicket, ticket, "", room="x")
    world.now_ms -= 45_000
    refused(world, TicketAlreadyUsed, ticket, "", room="x")


def test_a_wrong_proof_is_told_before_a_wrong_room(world: World, ticket: str) -> None:
    refused(world, NodeMismatch, ticket, "", room="x")


def test_an_invite_revoked_on_the_way_opens_nothing(world: World, mbp: Node, ticket: str) -> None:
    invite = world.gatekeeper.invites()[0]
    world.transact(lambda: world.gatekeeper.revoke_invite(invite.id, world.now_ms))
    refused(world, InvalidTicket, ticket, world.socket_proof(mbp, ticket))
    assert world.ledger.invite(invite.id).status is InviteStatus.REVOKED


def test_a_ticket_that_is_superseded_or_taken_back_is_void_in_two_places(
    world: World, mbp: Node, make_node: Any
) -> None:
    """Its row says so, and the invite does not wait for it any more: each alone keeps the door shut."""

    def superseded(_: Any, token: Any) -> None:
        world.exchange(mbp, token)

    def contested(_: Any, token: Any) -> None:
        with pytest.raises(TokenAlreadyUsed):
            world.exchange(make_node("lab"), token)

    def revoked(invite: Any, _: Any) -> None:
        world.transact(lambda: world.gatekeeper.revoke_invite(invite.id, world.now_ms))

    for happens in (superseded, contested, revoked):
        invite, token = world.invite()
        text = world.exchange(mbp, token).ws_ticket
        row = world.ledger.ticket(world.ledger.invite(invite.id).reservation.ticket)
        happens(invite, token)
        assert world.ledger.ticket(row.jti) == msgspec.structs.replace(row, status=TicketStatus.VOID)
        with world.database.transaction():
            world.ledger.put_ticket(row)
        refused(world, InvalidTicket, text, world.socket_proof(mbp, text))


def test_of_two_keys_on_their_way_to_one_name_the_first_owns_it(
    world: World, mbp: Node, make_node: Any
) -> None:
    rival = make_node("mbp", "another key")
    (_, one), (_, two) = world.invite(), world.invite()
    first, second = world.exchange(mbp, one).ws_ticket, world.exchange(rival, two).ws_ticket
    assert world.upgrade(rival, second).key == rival.key.public
    refused(world, NodeMismatch, first, world.socket_proof(mbp, first))
    assert [member.jkt for member in world.ledger.members()] == [rival.key.public.jkt]


def test_of_a_hundred_upgrades_one_succeeds(make_world: Any, mbp: Node) -> None:
    world = make_world()
    _, token = world.invite()
    ticket = world.exchange(mbp, token).ws_ticket
    proof, outcomes = world.socket_proof(mbp, ticket), []
    for _ in range(100):
        try:
            world.send_upgrade(ticket, proof)
            outcomes.append("opened")
        except TicketAlreadyUsed as error:
            outcomes.append(error.code)
    assert outcomes == ["opened"] + ["ticket_already_used"] * 99


def test_a_crash_before_the_commit_opens_nothing_and_spends_nothing(
    world: World, mbp: Node, ticket: str
) -> None:
    before = world.state()
    world.database.begin()
    world.gatekeeper.upgrade(
        ticket, world.socket_proof(mbp, ticket), path=PATH, room="state", now_ms=world.now_ms, client="c"
    )
    world.database.rollback()
    assert world.state() == before
    assert world.upgrade(mbp, ticket).first


def test_a_node_that_joins_again_is_counted(world: World, mbp: Node) -> None:
    assert world.join(mbp).member.counter == 1
    again = world.join(mbp, rooms=("state",))
    assert (again.member.counter, again.member.rooms) == (2, ("state",))
    assert len(world.ledger.members()) == 1
