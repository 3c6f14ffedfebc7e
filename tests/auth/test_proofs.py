from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from auth import jws
from auth.errors import NodeMismatch
from auth.keys import PublicKey, SigningKey
from auth.messages import EXCHANGE_PATH
from auth.proofs import (
    RequestProof,
    SocketProof,
    check_request_proof,
    check_socket_proof,
    request_hash,
    sign_proof,
    ticket_hash,
)
from outbox.ids import NodeId

REQUEST = RequestProof(htu=EXCHANGE_PATH, nonce="n", node="mbp", gw="vps", rh="h", iat=5)
SOCKET = SocketProof(htu="/ansible/yjs/state", ath=ticket_hash("t"), node="mbp", gw="vps", iat=5)


def check_request(proof: str) -> PublicKey:
    return check_request_proof(
        proof, htu=EXCHANGE_PATH, nonce="n", node=NodeId("mbp"), gateway=NodeId("vps"), rh="h"
    )


def check_socket(proof: str) -> PublicKey:
    return check_socket_proof(
        proof, htu="/ansible/yjs/state", ticket="t", node=NodeId("mbp"), gateway=NodeId("vps")
    )


def test_a_proof_shows_its_key(key: SigningKey) -> None:
    assert check_request(sign_proof(REQUEST, key)) == key.public
    assert check_socket(sign_proof(SOCKET, key)) == key.public


@pytest.mark.parametrize("field", ["htu", "nonce", "node", "gw", "rh"])
def test_a_proof_for_anything_else_is_refused(field: str, key: SigningKey) -> None:
    with pytest.raises(NodeMismatch):
        check_request(sign_proof(msgspec.structs.replace(REQUEST, **{field: "other"}), key))


@pytest.mark.parametrize("field", ["htu", "ath", "node", "gw"])
def test_a_socket_proof_for_anything_else_is_refused(field: str, key: SigningKey) -> None:
    with pytest.raises(NodeMismatch):
        check_socket(sign_proof(msgspec.structs.replace(SOCKET, **{field: "other"}), key))


def test_the_two_kinds_of_proof_are_not_interchangeable(key: SigningKey) -> None:
    with pytest.raises(NodeMismatch):
        check_socket(sign_proof(REQUEST, key))
    with pytest.raises(NodeMismatch):
        check_request(sign_proof(SOCKET, key))


@pytest.mark.parametrize("iat", [0, -1, 4_102_444_800])
def test_its_clock_is_not_judged(iat: int, key: SigningKey) -> None:
    assert check_request(sign_proof(msgspec.structs.replace(REQUEST, iat=iat), key)) == key.public
    assert check_socket(sign_proof(msgspec.structs.replace(SOCKET, iat=iat), key)) == key.public


@pytest.mark.parametrize(
    "changes",
    [
        {"htm": "GET"},
        {"htm": "post"},
        {"iat": "5"},
        {"iat": True},
        {"admin": True},
        {"rh": None},
        {"nonce": ...},
    ],
)
def test_claims_outside_the_profile_are_refused(changes: dict[str, Any], key: SigningKey) -> None:
    claims = {
        name: value for name, value in (msgspec.to_builtins(REQUEST) | changes).items() if value is not ...
    }
    kind = msgspec.defstruct("Claims", list(claims))
    with pytest.raises(NodeMismatch):
        check_request(jws.sign("ansible-node-proof+jwt", kind(**claims), key))


@pytest.mark.parametrize(
    "typ", ["JWT", "ansible-ticket+jwt", "ansible-gateway-proof+jwt", "ANSIBLE-NODE-PROOF+JWT"]
)
def test_tokens_of_another_type_are_refused(typ: str, key: SigningKey) -> None:
    with pytest.raises(NodeMismatch):
        check_request(jws.sign(typ, REQUEST, key))


def test_the_request_hash_covers_every_field_in_its_place() -> None:
    base = request_hash("/p", ("a", "b"), ("state",))
    others = [
        request_hash("/q", ("a", "b"), ("state",)),
        request_hash("/p", ("b", "a"), ("state",)),
        request_hash("/p", ("ab", ""), ("state",)),
        request_hash("/p", ("a", "b"), ("state", "pipe")),
        request_hash("/p", ("a", "b", "state"), ()),
    ]
    assert base not in others
    assert len(set(others)) == len(others)


def test_a_wrong_key_is_shown_as_itself(key: SigningKey, make_key: Callable[[str], SigningKey]) -> None:
    assert check_request(sign_proof(REQUEST, make_key("other"))) != key.public
