import json
from collections.abc import Callable
from hashlib import sha256
from random import Random
from typing import Any

import jwt
import msgspec
import pytest

from auth import jws
from auth.errors import InvalidJws
from auth.keys import SigningKey
from outbox import base64url

TYP = "ansible-test+jwt"
KID = "boot-1"


class Claims(msgspec.Struct, forbid_unknown_fields=True):
    sub: str
    exp: int
    cnf: dict[str, str]


CLAIMS = Claims("mbp", 5, {"jkt": "x"})


def part(value: object) -> str:
    return base64url.encode(value if isinstance(value, bytes) else json.dumps(value).encode())


def craft(key: SigningKey, header: object, payload: object) -> str:
    """A token whose signature is right, whatever it says."""
    text = f"{part(header)}.{part(payload)}"
    return f"{text}.{part(key.sign(text.encode()))}"


def header(**changes: Any) -> dict[str, Any]:
    members = {"alg": "EdDSA", "typ": TYP, "kid": KID} | changes
    return {name: value for name, value in members.items() if value is not ...}


def payload(**changes: Any) -> dict[str, Any]:
    members = {"sub": "mbp", "exp": 5, "cnf": {"jkt": "x"}} | changes
    return {name: value for name, value in members.items() if value is not ...}


def read(token: str, key: SigningKey) -> Claims:
    return jws.verify(token, TYP, key.public, Claims, kid=KID)


def refused(token: str, key: SigningKey) -> None:
    with pytest.raises(InvalidJws):
        read(token, key)
    with pytest.raises(InvalidJws):
        jws.verify_with_own_key(token, TYP, Claims)


def test_a_token_says_what_was_signed(key: SigningKey) -> None:
    assert read(jws.sign(TYP, CLAIMS, key, kid=KID), key) == CLAIMS
    assert read(craft(key, header(), payload()), key) == CLAIMS


def test_a_token_may_bring_its_key(key: SigningKey) -> None:
    public, claims = jws.verify_with_own_key(jws.sign(TYP, CLAIMS, key), TYP, Claims)
    assert (public, claims) == (key.public, CLAIMS)


def test_the_two_headers_are_not_interchangeable(key: SigningKey) -> None:
    with pytest.raises(InvalidJws):
        read(jws.sign(TYP, CLAIMS, key), key)
    with pytest.raises(InvalidJws):
        jws.verify_with_own_key(jws.sign(TYP, CLAIMS, key, kid=KID), TYP, Claims)


@pytest.mark.parametrize(
    "changes",
    [
        *({"alg": alg} for alg in ("none", "None", "nOnE", "", None, ..., 5, ["EdDSA"], {})),
        *({"alg": alg} for alg in ("HS256", "RS256", "ES256", "Ed25519", "eddsa", "EdDSA ", "Ed448")),
        *({name: "http://127.0.0.1:1/k"} for name in ("jku", "x5u", "x5c", "jwk", "foo")),
        *(
            {"kid": kid}
            for kid in ("../../dev/null", "' OR 1=1", 5, None, ["boot-1"], "k" * 2048, ..., "boot-2", "")
        ),
        *({"crit": crit} for crit in (["x"], [], ["b64"])),
        {"b64": False},
        {"b64": False, "crit": ["b64"]},
        {"zip": "DEF"},
        {"cty": "JWT"},
        *({"typ": typ} for typ in ("JWT", ..., "ansible-ticket+jwt", TYP.upper(), None, 5)),
    ],
    ids=str,
)
def test_any_other_header_is_refused(changes: dict[str, Any], key: SigningKey) -> None:
    refused(craft(key, header(**changes), payload()), key)


@pytest.mark.parametrize(
    "changes",
    [
        {"sub": ...},
        {"sub": 5},
        {"sub": None},
        {"exp": "5"},
        {"exp": 5.0},
        {"exp": True},
        {"exp": "1_000"},
        {"exp": 2**60},
        {"cnf": {"jkt": 5}},
        {"admin": True},
    ],
    ids=str,
)
def test_any_other_claim_set_is_refused(changes: dict[str, Any], key: SigningKey) -> None:
    refused(craft(key, header(), payload(**changes)), key)


@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b"",
        b"null",
        b"not json",
        b'{"sub":"mbp","sub":"mbp","exp":5,"cnf":{"jkt":"x"}}',
        b'{"sub":"mbp","exp":5,"cnf":{"jkt":"x","jkt":"x"}}',
        b'{"sub":"mbp","exp":1e300,"cnf":{"jkt":"x"}}',
        b'{"sub":"m\xff","exp":5,"cnf":{"jkt":"x"}}',
        b'\xef\xbb\xbf{"sub":"mbp","exp":5,"cnf":{"jkt":"x"}}',
        json.dumps(payload()).encode("utf-16"),
        b'{"sub":"mbp","exp":5,"cnf":' + b"[" * 1500,
    ],
)
def test_payloads_that_are_no_strict_json_are_refused(raw: bytes, key: SigningKey) -> None:
    refused(craft(key, header(), raw), key)


def test_a_header_with_duplicate_members_is_refused(key: SigningKey) -> None:
    raw = b'{"alg":"none","alg":"EdDSA","typ":"ansible-test+jwt","kid":"boot-1"}'
    refused(craft(key, raw, payload()), key)


@pytest.mark.parametrize("form", ["raw", "hex", "text", "pem"])
def test_the_public_key_is_no_hmac_secret(form: str, key: SigningKey) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = key.public
    secret = {
        "raw": public.raw,
        "hex": public.raw.hex().encode(),
        "text": public.text.encode(),
        "pem": public.verifier.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    }[form]
    text = f"{part(header(alg='HS256'))}.{part(payload())}"
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(text.encode(), secret)
    refused(f"{text}.{part(signature)}", key)


def test_signatures_that_are_almost_right_are_refused(
    key: SigningKey, make_key: Callable[[str], SigningKey]
) -> None:
    token = craft(key, header(), payload())
    head, body, signature = token.split(".")
    raw = base64url.decode(signature)
    order = 2**252 + 27742317777372353535851937790883648493
    plus_order = raw[:32] + (int.from_bytes(raw[32:], "little") + order).to_bytes(32, "little")
    wrong = [
        b"",
        raw[:-1],
        raw + b"\x00",
        bytes(64),
        b"\x01" + bytes(63),
        bytes(114),
        raw[32:] + raw[:32],
        plus_order,
    ]
    for bad in wrong:
        refused(f"{head}.{body}.{part(bad)}", key)
    refused(craft(make_key("another"), header(), payload()), key)


def test_parts_of_two_good_tokens_do_not_mix(key: SigningKey) -> None:
    one = craft(key, header(), payload()).split(".")
    two = craft(key, header(), payload(sub="lab")).split(".")
    for token in ((one[0], two[1], one[2]), (one[0], one[1], two[2])):
        refused(".".join(token), key)


def test_texts_that_are_no_compact_jws_are_refused(key: SigningKey) -> None:
    token = craft(key, header(), payload())
    padded = token + "=="
    for text in (
        "",
        ".",
        "..",
        "a.b",
        "a.b.c",
        padded,
        token + "\n",
        " " + token,
        token + ".x",
        "\ud800.a.b",
        "é.a.b",
    ):
        refused(text, key)
    refused("a" * 5000, key)
    refused(craft(key, header(), payload(sub="x" * 4000)), key)
    refused(token.replace(".", "..", 1), key)


def test_a_low_order_key_cannot_sign_everything(key: SigningKey) -> None:
    identity = b"\x01" + bytes(31)
    forged = {
        "alg": "EdDSA",
        "typ": TYP,
        "jwk": {"kty": "OKP", "crv": "Ed25519", "x": base64url.encode(identity)},
    }
    text = f"{part(forged)}.{part(payload())}"
    with pytest.raises(InvalidJws):
        jws.verify_with_own_key(f"{text}.{part(identity + bytes(32))}", TYP, Claims)


def test_no_mutant_passes_and_none_raises_anything_else(key: SigningKey) -> None:
    good = jws.sign(TYP, CLAIMS, key, kid=KID)
    rng = Random(7)
    alphabet = "".join(map(chr, range(32, 127))) + "\n\x00é\ud800"
    for _ in range(4000):
        text = list(good)
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(text))
            match rng.randrange(4):
                case 0:
                    text[place] = rng.choice(alphabet)
                case 1:
                    del text[place]
                case 2:
                    text.insert(place, rng.choice(alphabet))
                case _:
                    other = rng.randrange(len(text))
                    text[place], text[other] = text[other], text[place]
        mutant = "".join(text)
        if mutant != good:
            with pytest.raises(InvalidJws):
                read(mutant, key)


def test_no_signed_mutant_is_read_as_something_it_does_not_say(key: SigningKey) -> None:
    """The signature is right, header and claims are damaged: the profile itself is what is tested."""
    rng = Random(11)
    originals = json.dumps(header()).encode(), json.dumps(payload()).encode()
    for _ in range(1500):
        parts = [bytearray(text) for text in originals]
        victim = parts[rng.randrange(2)]
        victim[rng.randrange(len(victim))] = rng.randrange(256)
        try:
            claims = read(craft(key, bytes(parts[0]), bytes(parts[1])), key)
        except InvalidJws:
            continue
        assert json.loads(parts[0]) == header()
        assert json.loads(parts[1]) == msgspec.to_builtins(claims)


def test_tokens_are_stable(key: SigningKey) -> None:
    """The bytes on the wire, version 1: Ed25519 is deterministic, so a token is too."""
    token = jws.sign(TYP, CLAIMS, key, kid=KID)
    assert base64url.decode(token.split(".")[0]) == b'{"alg":"EdDSA","kid":"boot-1","typ":"ansible-test+jwt"}'
    assert sha256(token.encode()).digest() == sha256(jws.sign(TYP, CLAIMS, key, kid=KID).encode()).digest()
