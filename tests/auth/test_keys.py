from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from auth.errors import InvalidKey
from auth.keys import PublicKey, SigningKey, readable_key

RFC8037_X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
RFC8037_JKT = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def jwk(**changes: Any) -> dict[str, Any]:
    members = {"kty": "OKP", "crv": "Ed25519", "x": RFC8037_X} | changes
    return {name: value for name, value in members.items() if value is not ...}


def test_the_thumbprint_is_that_of_rfc_8037() -> None:
    assert PublicKey.from_jwk(jwk()).jkt == RFC8037_JKT


def test_a_key_has_one_identity_in_all_its_forms(key: SigningKey) -> None:
    public = key.public
    forms = {
        public,
        PublicKey.from_bytes(public.raw),
        PublicKey.from_text(public.text),
        PublicKey.from_jwk(public.jwk),
    }
    assert forms == {public}
    assert public != key


@pytest.mark.parametrize(
    "members",
    [
        jwk(d="nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"),
        jwk(kid="k"),
        jwk(x=RFC8037_X + "="),
        jwk(x="!!!!"),
        jwk(x=RFC8037_X[:-1]),
        jwk(x=RFC8037_X + "A"),
        jwk(x=RFC8037_X[:-1] + "p"),
        jwk(x=5),
        jwk(x=None),
        jwk(x=...),
        jwk(crv="Ed448"),
        jwk(crv="X25519"),
        jwk(crv="P-256"),
        jwk(kty="oct"),
        jwk(kty=...),
        jwk(kty=["OKP"]),
        [],
        None,
        "OKP",
        5,
        {"keys": [jwk()]},
    ],
)
def test_anything_but_one_plain_public_key_is_refused(members: object) -> None:
    with pytest.raises(InvalidKey):
        PublicKey.from_jwk(members)


@pytest.mark.parametrize("raw", [b"", bytes(32), b"\x01" + bytes(31), b"\xff" * 32, "x" * 32, bytearray(32)])
def test_bytes_that_are_no_key_are_refused(raw: Any) -> None:
    with pytest.raises(InvalidKey):
        PublicKey.from_bytes(raw)


def test_verify_says_no_to_whatever_is_no_signature(key: SigningKey) -> None:
    signature = key.sign(b"message")
    assert key.public.verify(signature, b"message")
    for wrong in (b"", signature[:-1], signature + b"\x00", bytes(64), None, "x", bytearray(signature)):
        assert not key.public.verify(wrong, b"message")  # type: ignore[arg-type]
    assert not key.public.verify(signature, b"massage")


def test_a_signature_has_one_form(key: SigningKey) -> None:
    order = 2**252 + 27742317777372353535851937790883648493
    signature = key.sign(b"message")
    scalar = int.from_bytes(signature[32:], "little") + order
    assert not key.public.verify(signature[:32] + scalar.to_bytes(32, "little"), b"message")


def test_repr_shows_no_private_byte() -> None:
    seed = sha256(b"seed").digest()
    assert seed.hex() not in repr(SigningKey(seed))
    assert SigningKey(seed).public.text in repr(SigningKey(seed))


def test_wycheproof(vectors: Callable[[str], Any]) -> None:
    for group in vectors("ed25519_test.json")["testGroups"]:
        public = PublicKey.from_bytes(bytes.fromhex(group["publicKey"]["pk"]))
        for case in group["tests"]:
            verdict = public.verify(bytes.fromhex(case["sig"]), bytes.fromhex(case["msg"]))
            assert verdict == (case["result"] == "valid"), case["tcId"]


def test_cctv_keys_with_a_low_order_part_or_a_second_encoding_never_enter(
    vectors: Callable[[str], Any],
) -> None:
    bad = {"low_order_A", "low_order_component_A", "non_canonical_A"}
    cases = vectors("cctv_ed25519.json")
    for raw in {case["key"] for case in cases if bad & set(case["flags"] or ())}:
        with pytest.raises(InvalidKey):
            PublicKey.from_bytes(bytes.fromhex(raw))
    honest = [case for case in cases if not bad & set(case["flags"] or ())]
    assert honest
    for case in honest:
        # RFC 8032 without cofactor: a leftover of low order or a second encoding of R is a bad signature.
        good = not {"low_order_residue", "non_canonical_R"} & set(case["flags"] or ())
        public = PublicKey.from_bytes(bytes.fromhex(case["key"]))
        assert public.verify(bytes.fromhex(case["sig"]), case["msg"].encode()) == good, case["number"]


def test_a_key_of_somebody_else_is_one_or_none() -> None:
    key = SigningKey(bytes(32)).public
    assert readable_key(key.raw) == key
    for raw in (b"", key.raw[:31], bytes(32), b"\xff" * 32):
        assert readable_key(raw) is None


def test_speccheck_finds_nothing_that_verifiers_disagree_about(vectors: Callable[[str], Any]) -> None:
    for number, case in enumerate(vectors("speccheck.json")):
        try:
            public = PublicKey.from_bytes(bytes.fromhex(case["pub_key"]))
        except InvalidKey:
            continue
        assert not public.verify(bytes.fromhex(case["signature"]), bytes.fromhex(case["message"])), number
