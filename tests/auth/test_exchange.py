"""An invite for a ticket: every way to be refused, and that a refusal costs the rightful node nothing."""

import json
from collections.abc import Callable
from hashlib import sha256
from itertools import count
from typing import Any

import msgspec
import pytest

from auth import jws
from auth.audit import AuditAction
from auth.errors import (
    AuthError,
    ExpiredToken,
    InvalidRequest,
    InvalidTicket,
    InvalidToken,
    NodeMismatch,
    ReplayDetected,
    RequestTooLarge,
    RoomForbidden,
    TokenAlreadyUsed,
)
from auth.invites import InviteId, InviteStatus, InviteToken
from auth.limits import INVITE_LIFE_MS_DEFAULT, NONCE_LIFE_MS
from auth.messages import EXCHANGE_PATH, RENEW_PATH
from auth.proofs import RequestProof, sign_proof
from outbox import base64url
from outbox.ids import NodeId

# The world and node fixtures are built by tests/auth/conftest.py.
World = Any
Node = Any


def refused(world: World, body: bytes, error: type[AuthError], key_of: Any = lambda _: None) -> AuthError:
    """The request fails with exactly this error, and nothing but the audit changes."""
    before = world.state()
    with pytest.raises(AuthError) as caught:
        world.send_exchange(body, key_of)
    assert type(caught.value) is error
    assert world.state() == before
    return caught.value


def changed(body: bytes, **fields: Any) -> bytes:
    members = json.loads(body) | fields
    return json.dumps({name: value for name, value in members.items() if value is not ...}).encode()


def reproved(signer: Node, body: bytes, typ: str = "ansible-node-proof+jwt", **claims: Any) -> bytes:
    """The request with a proof that is signed well and says something else."""
    members = json.loads(base64url.decode(json.loads(body)["nodeProof"].split(".")[1])) | claims
    members = {name: value for name, value in members.items() if value is not ...}
    record = msgspec.defstruct("Claims", list(members))(**members)
    return changed(body, nodeProof=jws.sign(typ, record, signer.key))


def joins(world: World, node: Node, token: InviteToken) -> None:
    """The rightful node is served, as if nothing had happened."""
    assert world.upgrade(node, world.exchange(node, token).ws_ticket).first


def test_an_invite_makes_a_member(world: World, mbp: Node) -> None:
    invite, token = world.invite()
    answer = world.exchange(mbp, token)
    assert answer.rooms == ("state",)
    admission = world.upgrade(mbp, answer.ws_ticket)
    assert (admission.node, admission.key, admission.room) == ("mbp", mbp.key.public, "state")
    assert admission.session_id == answer.session_id
    assert world.ledger.invite(invite.id).status is InviteStatus.USED
    assert [member.node for member in world.ledger.members()] == ["mbp"]


def test_shapes_are_judged_first(world: World, mbp: Node) -> None:
    _, token = world.invite()
    body = world.exchange_body(mbp, token)
    for bad in (
        b"",
        b"[]",
        changed(body, admin=True),
        changed(body, nodeId="MBP"),
        changed(body, nodeProof=5),
    ):
        refused(world, bad, InvalidRequest)
    refused(world, body + b" " * 16_384, RequestTooLarge)
    joins(world, mbp, token)


def test_unknown_and_wrong_tokens_get_one_answer(world: World, mbp: Node) -> None:
    (_, token), (_, other) = world.invite(), world.invite()
    body = world.exchange_body(mbp, token)
    text = token.text
    wrong = [
        InviteToken(InviteId("inv_" + "a" * 16), token.secret).text,
        InviteToken(token.id, sha256(b"guess").digest()).text,
        InviteToken(token.id, other.secret).text,
        text[:-1] + ("A" if text[-1] != "A" else "E"),
        text.upper(),
        text + " ",
        text[:-2],
        "",
    ]
    answers = {str(refused(world, changed(body, inviteToken=bad), InvalidToken)) for bad in wrong}
    assert len(answers) == 1
    joins(world, mbp, token)


def test_a_name_that_has_a_key_is_not_given_to_another(world: World, mbp: Node, make_node: Any) -> None:
    world.join(mbp)
    before = world.ledger.members()
    _, token = world.invite()
    thief = make_node("mbp", "a thief's key")
    refused(world, world.exchange_body(thief, token), NodeMismatch)
    assert world.ledger.members() == before
    joins(world, make_node("lab"), token)


def test_a_key_that_has_a_name_does_not_get_a_second(world: World, mbp: Node, make_node: Any) -> None:
    world.join(mbp)
    _, token = world.invite()
    refused(world, world.exchange_body(make_node("mbp-2", "mbp"), token), NodeMismatch)


def test_names_that_other_seeds_admitted_are_taken(
    world: World, mbp: Node, make_key: Any, key_book: Any
) -> None:
    _, token = world.invite()
    body = world.exchange_body(mbp, token)
    refused(world, body, NodeMismatch, key_book({"mbp": make_key("somebody").public}))
    assert world.send_exchange(body, key_book({"mbp": mbp.key.public}))


def test_the_gateways_own_name_and_keys_are_taken(world: World, make_node: Any) -> None:
    _, token = world.invite()
    for node in (
        make_node("vps", "another"),
        make_node("vps", "key of vps"),
        make_node("mbp", "key of vps"),
        make_node("mbp", "root of vps"),
    ):
        refused(world, world.exchange_body(node, token), NodeMismatch)


def test_an_invite_may_expect_a_name(world: World, mbp: Node, make_node: Any) -> None:
    _, token = world.invite(expected_node=NodeId("mbp"))
    refused(world, world.exchange_body(make_node("lab"), token), NodeMismatch)
    joins(world, mbp, token)


def test_an_invite_may_expect_a_key(world: World, mbp: Node, make_node: Any) -> None:
    _, token = world.invite(expected_key=mbp.key.public.jkt)
    refused(world, world.exchange_body(make_node("mbp", "another"), token), NodeMismatch)
    joins(world, mbp, token)


LOW_ORDER = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
]


def forged(body: bytes, jwk: object, signature: bytes) -> bytes:
    claims = json.loads(body)["nodeProof"].split(".")[1]
    header = {"alg": "EdDSA", "typ": "ansible-node-proof+jwt", "jwk": jwk}
    text = f"{base64url.encode(json.dumps(header).encode())}.{claims}"
    return changed(body, nodeProof=f"{text}.{base64url.encode(signature)}")


@pytest.mark.parametrize("encoding", LOW_ORDER)
def test_keys_that_verify_everything_prove_nothing(encoding: str, world: World, mbp: Node) -> None:
    _, token = world.invite()
    body = world.exchange_body(mbp, token)
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": base64url.encode(bytes.fromhex(encoding))}
    for r in (b"\x01" + bytes(31), bytes.fromhex(encoding)):
        refused(world, forged(body, jwk, r + bytes(32)), NodeMismatch)


def test_headers_with_other_keys_prove_nothing(world: World, mbp: Node) -> None:
    _, token = world.invite()
    body = world.exchange_body(mbp, token)
    x = mbp.key.public.text
    good = {"kty": "OKP", "crv": "Ed25519", "x": x}
    others: list[object] = [
        good | {"d": x},
        good | {"use": "sig"},
        *(good | {"x": value} for value in (x + "=", "!!!!", x[:-1], x + "A", 5, None)),
        *(good | {"crv": crv} for crv in ("Ed448", "X25519", "P-256")),
        good | {"kty": "oct"},
        {"kty": "OKP", "crv": "Ed25519"},
        [],
        None,
        "jwk",
    ]
    for jwk in others:
        header = {"alg": "EdDSA", "typ": "ansible-node-proof+jwt", "jwk": jwk}
        text = (
            f"{base64url.encode(json.dumps(header).encode())}.{json.loads(body)['nodeProof'].split('.')[1]}"
        )
        signed = f"{text}.{base64url.encode(mbp.key.sign(text.encode()))}"
        refused(world, changed(body, nodeProof=signed), NodeMismatch)
    joins(world, mbp, token)


def test_a_proof_is_needed(world: World, mbp: Node) -> None:
    _, token = world.invite()
    body = world.exchange_body(mbp, token)
    refused(world, changed(body, nodeProof=...), NodeMismatch)
    refused(world, changed(body, nodeProof=""), NodeMismatch)
    joins(world, mbp, token)


@pytest.mark.parametrize(
    "claims",
    [
        {"gw": "lab"},
        {"htu": RENEW_PATH},
        {"htu": "https://vps.example" + EXCHANGE_PATH},
        {"htm": "GET"},
        {"node": "lab"},
        {"nonce": "other"},
        {"rh": base64url.encode(bytes(32))},
        {"admin": True},
        {"iat": "5"},
        {"rh": ...},
        {"iat": ...},
    ],
    ids=str,
)
def test_a_proof_for_something_else_is_refused(claims: dict[str, Any], world: World, mbp: Node) -> None:
    _, token = world.invite()
    body = world.exchange_body(mbp, token)
    refused(world, reproved(mbp, body, **claims), NodeMismatch)
    refused(world, reproved(mbp, body, typ="JWT"), NodeMismatch)
    joins(world, mbp, token)


def test_a_request_that_was_changed_after_signing_is_refused(world: World, mbp: Node, make_node: Any) -> None:
    (_, token), (_, other) = world.invite(), world.invite()
    body = world.exchange_body(mbp, token)
    refused(world, changed(body, requestedRooms=["state", "pipe"]), NodeMismatch)
    refused(world, changed(body, nodeId="lab"), NodeMismatch)
    refused(world, changed(body, inviteToken=other.text), NodeMismatch)
    refused(world, changed(body, nonce=world.challenge(mbp).nonce), NodeMismatch)
    joins(world, mbp, token)


def test_a_members_proof_does_not_speak_for_another_name(world: World, mbp: Node, make_node: Any) -> None:
    lab = make_node("lab")
    world.join(mbp)
    world.join(lab)
    _, token = world.invite()
    refused(world, reproved(lab, world.exchange_body(mbp, token)), NodeMismatch)


def test_a_revoked_invite_is_unknown(world: World, mbp: Node) -> None:
    invite, token = world.invite()
    world.transact(lambda: world.gatekeeper.revoke_invite(invite.id, world.now_ms))
    refused(world, world.exchange_body(mbp, token), InvalidToken)


def test_time_decides_only_for_those_who_know_the_secret(world: World, mbp: Node) -> None:
    _, token = world.invite()
    world.now_ms += INVITE_LIFE_MS_DEFAULT - 1
    good = world.exchange_body(mbp, token)
    world.now_ms += 1
    refused(world, good, ExpiredToken)
    guess = InviteToken(token.id, sha256(b"guess").digest())
    refused(world, world.exchange_body(mbp, guess), InvalidToken)


def test_a_used_invite_stays_used(world: World, mbp: Node, make_node: Any) -> None:
    _, token = world.invite()
    joins(world, mbp, token)
    for node in (mbp, make_node("lab")):
        refused(world, world.exchange_body(node, token), TokenAlreadyUsed)
    world.now_ms += INVITE_LIFE_MS_DEFAULT
    refused(world, world.exchange_body(mbp, token), TokenAlreadyUsed)


def test_a_second_key_makes_the_invite_worthless_for_both(world: World, mbp: Node, make_node: Any) -> None:
    invite, token = world.invite()
    ticket = world.exchange(mbp, token).ws_ticket
    with pytest.raises(TokenAlreadyUsed):
        world.exchange(make_node("lab"), token)
    assert world.ledger.invite(invite.id).status is InviteStatus.CONTESTED
    with pytest.raises(InvalidTicket):
        world.upgrade(mbp, ticket)
    refused(world, world.exchange_body(mbp, token), TokenAlreadyUsed)
    rows = [row.event for row in world.ledger.audit(0, 100)]
    contested = [row for row in rows if row.action is AuditAction.INVITE_CONTESTED]
    assert [(row.node, row.subject) for row in contested] == [("lab", invite.id)]
    assert mbp.key.public.jkt in contested[0].detail
    assert world.ledger.members() == []


def test_the_same_key_may_not_ask_for_more(world: World, mbp: Node, make_node: Any) -> None:
    _, token = world.invite()
    ticket = world.exchange(mbp, token).ws_ticket
    refused(world, world.exchange_body(mbp, token, ("state", "pipe")), TokenAlreadyUsed)
    refused(world, world.exchange_body(make_node("other-name", "mbp"), token), TokenAlreadyUsed)
    assert world.upgrade(mbp, ticket).first


def test_a_lost_answer_is_asked_for_again(world: World, mbp: Node) -> None:
    _, token = world.invite()
    first = world.exchange(mbp, token, ("state", "pipe"))
    second = world.exchange(mbp, token, ("pipe", "state"))
    with pytest.raises(InvalidTicket):
        world.upgrade(mbp, first.ws_ticket)
    assert world.upgrade(mbp, second.ws_ticket).first


def test_a_reservation_does_not_outlive_the_invite(world: World, mbp: Node) -> None:
    _, token = world.invite(life_ms=10_000)
    world.exchange(mbp, token)
    world.now_ms += 10_000
    refused(world, world.exchange_body(mbp, token), ExpiredToken)


def test_rooms_outside_the_invite_are_refused_not_cut_down(world: World, mbp: Node) -> None:
    _, token = world.invite(rooms=("state",))
    refused(world, world.exchange_body(mbp, token, ("state", "pipe")), RoomForbidden)
    _, wide = world.invite()
    refused(world, world.exchange_body(mbp, wide, ("state", "secrets")), RoomForbidden)
    joins(world, mbp, token)


def test_a_request_is_taken_once(world: World, mbp: Node) -> None:
    _, token = world.invite()
    body = world.exchange_body(mbp, token)
    answer = world.send_exchange(body)
    refused(world, body, ReplayDetected)
    world.start("boot-2")
    refused(world, body, ReplayDetected)
    world.start()
    assert world.upgrade(mbp, answer.ws_ticket).first
    refused(world, body, TokenAlreadyUsed)


def test_a_nonce_is_taken_once(world: World, mbp: Node) -> None:
    _, token = world.invite()
    trusted = world.challenge(mbp)
    world.send_exchange(mbp.joiner.exchange(trusted, token, world.now_ms))
    refused(world, mbp.joiner.exchange(trusted, token, world.now_ms + 5000), ReplayDetected)


def test_nonces_that_are_not_ours_are_refused(
    world: World, mbp: Node, make_world: Any, make_node: Any
) -> None:
    _, token = world.invite()
    trusted = world.challenge(mbp)
    other = make_world("lab").challenge(mbp).nonce
    another_node = world.challenge(make_node("lab")).nonce
    good = trusted.nonce
    for nonce in ("", base64url.encode(bytes(40)), other, another_node, good[:-1], good + "=", good + "A"):
        # Signed well by the right key: only the nonce itself is wrong.
        body = mbp.joiner.exchange(msgspec.structs.replace(trusted, nonce=nonce), token, world.now_ms)
        refused(world, body, ReplayDetected)
    assert world.send_exchange(mbp.joiner.exchange(trusted, token, world.now_ms))


def test_a_late_nonce_is_refused(world: World, mbp: Node) -> None:
    _, token = world.invite()
    early, late = world.exchange_body(mbp, token), world.exchange_body(mbp, token)
    world.now_ms += NONCE_LIFE_MS - 1
    assert world.send_exchange(early)
    world.now_ms += 1
    refused(world, late, ReplayDetected)
    joins(world, mbp, token)


@pytest.mark.parametrize("iat", [0, -1, 4_102_444_800])
def test_the_joiners_clock_does_not_matter(iat: int, world: World, mbp: Node) -> None:
    _, token = world.invite()
    assert world.send_exchange(reproved(mbp, world.exchange_body(mbp, token), iat=iat))


def test_a_crash_before_the_commit_leaves_nothing(world: World, mbp: Node) -> None:
    _, token = world.invite()
    body = world.exchange_body(mbp, token)
    before = world.state()
    world.database.begin()
    world.gatekeeper.exchange(body, world.now_ms, world.entropy(), "c")
    world.database.rollback()
    assert world.state() == before
    joins(world, mbp, token)


def test_a_crash_before_the_answer_is_survived(world: World, mbp: Node) -> None:
    _, token = world.invite()
    world.exchange(mbp, token)
    world.start("boot-2")
    joins(world, mbp, token)


def test_of_sixty_keys_at_most_one_gets_in(make_world: Callable[..., World], make_node: Any) -> None:
    world = make_world()
    _, token = world.invite()
    nodes = [make_node(f"node-{number}") for number in range(60)]
    bodies = [world.exchange_body(node, token) for node in nodes]
    answers = []
    for body in bodies:
        try:
            answers.append(world.send_exchange(body))
        except TokenAlreadyUsed:
            answers.append(None)
    assert [answer is not None for answer in answers] == [True] + [False] * 59
    assert world.gatekeeper.invites()[0].status is InviteStatus.CONTESTED
    with pytest.raises(InvalidTicket):
        world.upgrade(nodes[0], answers[0].ws_ticket)


def test_of_twenty_exchanges_of_one_key_one_opens_a_socket(
    make_world: Callable[..., World], mbp: Node
) -> None:
    world = make_world()
    _, token = world.invite()
    tickets = [world.exchange(mbp, token).ws_ticket for _ in range(20)]
    opened = []
    for ticket in tickets:
        try:
            opened.append(world.upgrade(mbp, ticket))
        except InvalidTicket:
            continue
    assert len(opened) == 1


def test_no_proof_of_another_purpose_is_taken(world: World, mbp: Node) -> None:
    _, token = world.invite()
    trusted = world.challenge(mbp)
    renewal = json.loads(mbp.joiner.renew(trusted, world.now_ms))
    body = mbp.joiner.exchange(trusted, token, world.now_ms)
    refused(world, changed(body, nodeProof=renewal["nodeProof"]), NodeMismatch)
    joins(world, mbp, token)


def test_bad_json_web_signatures_are_a_wrong_proof(world: World, mbp: Node) -> None:
    """The kinds of tests/auth/test_jws.py, at this door: one code, never another exception."""
    _, token = world.invite()
    body = world.exchange_body(mbp, token)
    head, claims, signature = json.loads(body)["nodeProof"].split(".")
    good = json.loads(base64url.decode(head))
    headers: list[dict[str, Any]] = [
        *(good | {"alg": alg} for alg in ("none", "", None, 5, ["EdDSA"], {}, "HS256", "Ed25519", "eddsa")),
        *(good | {name: "x"} for name in ("kid", "jku", "x5u", "x5c", "crit", "b64", "zip", "cty")),
        *(good | {"typ": typ} for typ in ("JWT", None, "ansible-ticket+jwt", "ANSIBLE-NODE-PROOF+JWT")),
        {"alg": "EdDSA", "typ": good["typ"]},
    ]
    for header in headers:
        text = f"{base64url.encode(json.dumps(header).encode())}.{claims}"
        proof = f"{text}.{base64url.encode(mbp.key.sign(text.encode()))}"
        refused(world, changed(body, nodeProof=proof), NodeMismatch)
    for proof in (
        "a.b.c",
        f"{head}.{claims}",
        f"{head}.{claims}.",
        f"{head}..{signature}",
        "x" * 5000,
        "\u00e9",
    ):
        refused(world, changed(body, nodeProof=proof), NodeMismatch)
    joins(world, mbp, token)


def test_proofs_are_free_to_vary_only_where_nobody_looks(world: World, mbp: Node) -> None:
    """A proof made by hand from the contract alone is taken: the joiner's code is no part of it."""
    _, token = world.invite()
    nonce = world.challenge(mbp).nonce
    fields = [EXCHANGE_PATH, token.text, "mbp", nonce, ["state"]]
    rh = base64url.encode(sha256(json.dumps(fields, separators=(",", ":")).encode()).digest())
    proof = sign_proof(
        RequestProof(htu=EXCHANGE_PATH, nonce=nonce, node="mbp", gw="vps", rh=rh, iat=next(count())), mbp.key
    )
    body = {"inviteToken": token.text, "nodeId": "mbp", "nonce": nonce, "nodeProof": proof}
    assert world.send_exchange(json.dumps(body).encode()).rooms == ("state",)
