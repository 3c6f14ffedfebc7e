from typing import Any

import msgspec
import pytest

from auth import jws
from auth.errors import WrongGateway
from auth.gateway_proofs import GatewayProof, Pin
from auth.joincodes import decode_join_code, encode_join_code
from auth.joiner import pin_of
from auth.messages import ChallengeAnswer, encode_message

# The world and node fixtures are built by tests/auth/conftest.py.
World = Any
Node = Any


def answered(world: World, node: Node, pin: Pin) -> tuple[ChallengeAnswer, Any]:
    body, asked = node.joiner.challenge(pin, world.entropy())
    return world.gatekeeper.challenge(body, world.now_ms, world.entropy(), "c"), asked


def refused(node: Node, asked: Any, answer: ChallengeAnswer | bytes) -> None:
    with pytest.raises(WrongGateway):
        node.joiner.accept(asked, answer if isinstance(answer, bytes) else encode_message(answer))


def test_a_join_code_is_all_that_is_needed(world: World, mbp: Node) -> None:
    invite, token = world.invite()
    text = encode_join_code(world.gatekeeper.join_code(invite, token, ("http://127.0.0.1:7777",)))
    code = decode_join_code(text)
    answer, asked = answered(world, mbp, pin_of(code))
    trusted = mbp.joiner.accept(asked, encode_message(answer))
    assert (trusted.gateway.node, trusted.gateway.key) == ("vps", world.key.public)
    body = mbp.joiner.exchange(trusted, code.token, world.now_ms)
    ticket = mbp.joiner.ticket(encode_message(world.send_exchange(body)))
    assert world.upgrade(mbp, ticket.ws_ticket).first


def test_nothing_that_is_sent_before_the_proof_holds_the_token(world: World, mbp: Node) -> None:
    _, token = world.invite()
    body, _ = mbp.joiner.challenge(world.pin, world.entropy())
    assert token.text.split(".")[1].encode() not in body
    assert token.id.encode() not in body


def test_another_gateway_is_not_trusted(world: World, mbp: Node, make_world: Any) -> None:
    other = make_world("vps-2")
    answer, asked = answered(other, mbp, world.pin)
    refused(mbp, asked, answer)


def test_an_answer_to_another_question_is_not_trusted(world: World, mbp: Node, make_node: Any) -> None:
    answer, asked = answered(world, mbp, world.pin)
    _, other_question = mbp.joiner.challenge(world.pin, world.entropy())
    refused(mbp, other_question, answer)
    refused(make_node("lab"), asked, answer)
    assert mbp.joiner.accept(asked, encode_message(answer))


def test_an_answer_that_was_changed_on_its_way_is_not_trusted(world: World, mbp: Node) -> None:
    answer, asked = answered(world, mbp, world.pin)
    for changes in (
        {"nonce": "other"},
        {"gateway_id": "lab"},
        {"gateway_id": "../x"},
        {"gateway_proof": ""},
        {"gateway_proof": answer.gateway_proof[:-2]},
    ):
        refused(mbp, asked, msgspec.structs.replace(answer, **changes))
    for body in (b"", b"[]", b"{}", b"<html>", b"x" * 20_000, b'{"nonce":1}'):
        refused(mbp, asked, body)


def test_a_proof_of_another_type_is_not_trusted(world: World, mbp: Node) -> None:
    answer, asked = answered(world, mbp, world.pin)
    claims = GatewayProof(
        client_nonce=asked.client_nonce,
        node="mbp",
        nonce=answer.nonce,
        gw="vps",
        mesh=world.mesh,
        cert=world.gatekeeper.gate.certificate,
    )
    for typ, trusted in (("ansible-node-proof+jwt", False), ("ansible-gateway-proof+jwt", True)):
        forged = msgspec.structs.replace(answer, gateway_proof=jws.sign(typ, claims, world.key))
        if trusted:
            assert mbp.joiner.accept(asked, encode_message(forged))
        else:
            refused(mbp, asked, forged)


def test_an_answer_without_a_ticket_is_told(mbp: Node) -> None:
    for body in (b"", b"{}", b'{"wsTicket":5}'):
        with pytest.raises(WrongGateway):
            mbp.joiner.ticket(body)


def test_any_seed_of_the_mesh_may_renew(world: World, mbp: Node, make_world: Any) -> None:
    answer, asked = answered(world, mbp, Pin(mesh=world.mesh))
    assert mbp.joiner.accept(asked, encode_message(answer))
    answer, asked = answered(make_world("vps-2"), mbp, Pin(mesh=world.mesh))
    refused(mbp, asked, answer)


def test_repr_shows_no_nonce(world: World, mbp: Node) -> None:
    trusted = world.challenge(mbp)
    assert trusted.nonce not in repr(trusted)
