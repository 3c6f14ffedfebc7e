import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox import base64url
from stateroom.bodies import AdmissionBody, HeartbeatBody, NodeBody, RoomMap
from stateroom.errors import InvalidRecord
from stateroom.records import parse_record, sign_record, thumbprint, verify_record


def sign(message: bytes) -> bytes:
    return hashlib.sha512(b"key" + message).digest()


def verify(key: bytes, signature: bytes, message: bytes) -> bool:
    return hashlib.sha512(key + message).digest() == signature


MESH = thumbprint(b"r" * 32)
EPOCH = "000001-0123456789ab"
CLAIMS = {
    "mesh": MESH,
    "map": "presence",
    "key": "a",
    "signer": "a",
    "epoch": 1,
    "counter": 2,
    "body": {"atMs": 5},
}


def token(claims: object, header: bytes = b'{"alg":"EdDSA","typ":"ansible-record+jwt"}') -> str:
    payload = claims if isinstance(claims, bytes) else msgspec.json.encode(claims)
    message = f"{base64url.encode(header)}.{base64url.encode(payload)}"
    return f"{message}.{base64url.encode(sign(message.encode()))}"


def test_thumbprint_of_rfc_8037_appendix_a3() -> None:
    key = base64url.decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
    assert thumbprint(key) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


@given(
    st.integers(0, 2**53 - 1), st.integers(0, 2**31), st.lists(st.from_regex(r"\A[a-z]{1,5}\Z"), max_size=4)
)
def test_round_trip(counter: int, epoch: int, links: list[str]) -> None:
    body = HeartbeatBody(at_ms=counter, links=tuple(links))
    text = sign_record(
        sign,
        mesh=MESH,
        room_map=RoomMap.PRESENCE,
        key="a",
        signer="a",
        epoch=epoch,
        counter=counter,
        body=body,
    )
    record = parse_record(text)
    assert (record.body, record.epoch, record.counter, record.signer) == (body, epoch, counter, "a")
    assert verify_record(record, b"key", verify)
    assert not verify_record(record, b"other", verify)


def test_the_control_of_the_cases_below_parses() -> None:
    assert parse_record(token(CLAIMS)).key == "a"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"extra": 1}, "claims"),
        ({"counter": 2**53}, "claims"),
        ({"counter": -1}, "claims"),
        ({"counter": "2"}, "claims"),
        ({"counter": True}, "claims"),
        ({"epoch": -1}, "claims"),
        ({"mesh": "short"}, "claims"),
        ({"map": "secrets"}, "claims"),
        ({"key": "A"}, "claims"),
        ({"key": "a\n"}, "claims"),
        ({"key": "root"}, "claims"),
        ({"signer": "../x"}, "claims"),
        ({"body": {"atMs": 5, "more": 1}}, "body"),
        ({"body": {"atMs": 2**53}}, "body"),
        ({"body": {}}, "body"),
        ({"body": []}, "body"),
        ({"body": {"atMs": 5, "links": []}}, "not_canonical"),
        ({"map": "cursors", "body": {"cursors": {"b": ["", 1]}, "head": [EPOCH, 1]}}, "body"),
        ({"map": "cursors", "body": {"cursors": {"b": ["1", 1]}, "head": [EPOCH, 1]}}, "body"),
        ({"map": "cursors", "body": {"cursors": {}, "head": ["", 0]}}, "body"),
        ({"body": None}, "tombstone"),
        ({"rootKey": base64url.encode(b"r" * 32)}, "root_key"),
        ({"signer": "root"}, "root_key"),
        ({"signer": "root", "rootKey": base64url.encode(b"x" * 32)}, "root_key"),
    ],
)
def test_wrong_claims_are_refused_with_their_reason(change: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        parse_record(token(CLAIMS | change))
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "payload",
    [
        msgspec.json.encode(CLAIMS).replace(b'"counter":2', b'"counter":2.0'),
        msgspec.json.encode(CLAIMS).replace(b'"counter":2', b'"counter":1,"counter":2'),
        msgspec.json.encode(CLAIMS).replace(b'"counter":2', b'"counter": 2'),
        msgspec.json.encode(CLAIMS).replace(b'"atMs":5', b'"atMs":5,"atMs":5'),
        msgspec.json.encode(CLAIMS).replace(b'"a"', b'"\\u0061"'),
        b"\xff",
        b"[" * 100_00,
        b"null",
        b"",
    ],
)
def test_one_statement_has_one_text(payload: bytes) -> None:
    with pytest.raises(InvalidRecord):
        parse_record(token(payload))


@pytest.mark.parametrize(
    "text",
    [
        token(CLAIMS, b'{"alg":"none","typ":"ansible-record+jwt"}'),
        token(CLAIMS, b'{"alg":"HS256","typ":"ansible-record+jwt"}'),
        token(CLAIMS, b'{"alg":"EdDSA","typ":"JWT"}'),
        token(CLAIMS, b'{"alg":"EdDSA","typ":"ansible-record+jwt","kid":"a"}'),
        token(CLAIMS) + "==",
        token(CLAIMS) + ".",
        token(CLAIMS) + "\n",
        token(CLAIMS).rpartition(".")[0] + ".",
        token(CLAIMS).rpartition(".")[0] + "." + base64url.encode(b"s" * 63),
        "é" + token(CLAIMS),
        "",
        "..",
        "x" * 20_000,
    ],
)
def test_only_the_one_form_of_jws_is_read(text: str) -> None:
    with pytest.raises(InvalidRecord):
        parse_record(text)


def test_what_could_not_be_read_is_not_signed() -> None:
    body = NodeBody(endpoints=("x" * 600,), outbox_epoch="", head_seq=0, head_hash="", software="")
    with pytest.raises(InvalidRecord):
        sign_record(
            sign, mesh=MESH, room_map=RoomMap.NODES, key="a", signer="a", epoch=1, counter=1, body=body
        )


def test_an_admission_holds_a_key_of_32_bytes() -> None:
    body = AdmissionBody(public_key="!" * 43, role="member")
    with pytest.raises(InvalidRecord):
        sign_record(
            sign, mesh=MESH, room_map=RoomMap.ADMISSIONS, key="a", signer="s", epoch=1, counter=1, body=body
        )


@given(st.data())
def test_no_mutant_of_a_record_verifies(data: st.DataObject) -> None:
    text = token(CLAIMS)
    at = data.draw(st.integers(0, len(text) - 1))
    mutant = text[:at] + data.draw(st.characters(codec="utf-8")) + text[at + 1 :]
    try:
        record = parse_record(mutant)
    except InvalidRecord:
        return
    assert verify_record(record, b"key", verify) == (mutant == text)
