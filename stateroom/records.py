"""A record: one statement about one key of a room, signed, as one compact string.

Form: JWS compact serialisation (RFC 7515) with EdDSA over Ed25519 (RFC 8037)::

    base64url({"alg":"EdDSA","typ":"ansible-record+jwt"}) . base64url(claims) . base64url(signature)

The header is these exact bytes and nothing else. Claims, in this order, without spaces::

    mesh     mesh id                           key      node or agent id
    map      nodes | admissions | …            signer   node id, or "root"
    epoch    ordinal of the signer's outbox    counter  rises with each record of this key
    body     see stateroom.bodies; null is a tombstone
    rootKey  only when the root signs: its raw public key, whose thumbprint is the mesh id

The text of a record is canonical: claims that do not encode to the same bytes again are refused, so there are
no duplicate members, no ``1.0`` for ``1``, and one statement has one text. Records of a key compare by
``(epoch, counter)``. Source: the state room section of ``docs/PROTOCOL.md``.
"""

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated

import msgspec

from outbox import base64url
from outbox.errors import InvalidId
from outbox.ids import MeshId
from stateroom.bodies import (
    BODY_TYPES,
    IN_AWARENESS,
    ROOT,
    STANDING_BYTES,
    TOMBSTONES,
    AdmissionBody,
    Body,
    Count,
    ForkBody,
    Name,
    RevocationBody,
    RoomMap,
    check_key,
)
from stateroom.errors import InvalidRecord
from stateroom.limits import FORK_CHARS_MAX, RECORD_CHARS_MAX, RECORDS_REMEMBERED

Sign = Callable[[bytes], bytes]
"""Ed25519: message to 64 bytes of signature, by the key of this node."""

Verify = Callable[[bytes, bytes, bytes], bool]
"""Ed25519: (raw public key, signature, message) to whether it fits."""

_HEADER = base64url.encode(b'{"alg":"EdDSA","typ":"ansible-record+jwt"}') + "."


class _Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    mesh: Annotated[str, msgspec.Meta(min_length=43, max_length=43)]
    map: RoomMap
    key: str
    signer: Name
    epoch: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    counter: Count
    body: msgspec.Raw
    root_key: str = ""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed record. Parsed is not verified: only the index knows whose word counts."""

    text: str
    mesh: MeshId
    map: RoomMap
    key: str
    signer: str
    epoch: int
    counter: int
    body: Body | None
    """None is a tombstone: the key is gone, its counter is not."""
    root_key: bytes = b""

    @property
    def rank(self) -> tuple[int, int, str]:
        """Records of one signer for one key compare by this; equal numbers fall back to the text."""
        return (self.epoch, self.counter, self.text)


def thumbprint(public_key: bytes) -> MeshId:
    """RFC 7638 thumbprint of a raw Ed25519 key; of the root key it is the mesh id."""
    jwk = f'{{"crv":"Ed25519","kty":"OKP","x":"{base64url.encode(public_key)}"}}'
    return MeshId(base64url.encode(hashlib.sha256(jwk.encode()).digest()))


def sign_record(
    sign: Sign,
    *,
    mesh: MeshId,
    room_map: RoomMap,
    key: str,
    signer: str,
    epoch: int,
    counter: int,
    body: Body | None,
    root_key: bytes = b"",
) -> str:
    """Make the text of a record. Raises InvalidRecord for what ``parse_record`` would refuse."""
    raw = msgspec.Raw(msgspec.json.encode(body))
    root = base64url.encode(root_key)
    claims = _Claims(mesh, room_map, key, signer, epoch, counter, raw, root)
    message = _HEADER + base64url.encode(msgspec.json.encode(claims))
    text = f"{message}.{base64url.encode(sign(message.encode()))}"
    parse_record(text)
    return text


@lru_cache(RECORDS_REMEMBERED)
def parse_record(text: str) -> Record:
    """Read a record, strictly, without judging its signature. Raises InvalidRecord."""
    if len(text) > FORK_CHARS_MAX:
        raise InvalidRecord("size")
    if not text.isascii() or not text.startswith(_HEADER) or text.count(".") != 2:
        raise InvalidRecord("form")
    _, payload, signature = text.split(".")
    if len(_decode(signature)) != 64:
        raise InvalidRecord("signature_length")
    claims = _claims(_decode(payload))
    if len(text) > RECORD_CHARS_MAX and claims.map is not RoomMap.FORKS:
        raise InvalidRecord("size")
    return Record(
        text=text,
        mesh=MeshId(claims.mesh),
        map=claims.map,
        key=claims.key,
        signer=claims.signer,
        epoch=claims.epoch,
        counter=claims.counter,
        body=_body(claims),
        root_key=_root_key(claims),
    )


def parse_stored(mesh: MeshId, room_map: str, key: str, value: object) -> Record:
    """Read what stands in a room under a map and a key, as ``parse_record``. Raises InvalidRecord."""
    if not isinstance(value, str):
        raise InvalidRecord("not_text")
    record = parse_record(value)
    if record.mesh != mesh:
        raise InvalidRecord("foreign_mesh")
    if (record.map, record.key) != (room_map, key) or record.map in IN_AWARENESS:
        raise InvalidRecord("wrong_key")
    return record


def verify_record(record: Record, public_key: bytes, verify: Verify) -> bool:
    """Whether this key made the record's signature."""
    message, _, signature = record.text.rpartition(".")
    return verify(public_key, base64url.decode(signature), message.encode())


def _decode(text: str) -> bytes:
    try:
        return base64url.decode(text)
    except ValueError:
        raise InvalidRecord("base64") from None


def _claims(payload: bytes) -> _Claims:
    try:
        claims = msgspec.json.decode(payload, type=_Claims)
        check_key(claims.map, claims.key)
    except (msgspec.DecodeError, UnicodeDecodeError, InvalidId, RecursionError):
        raise InvalidRecord("claims") from None
    if msgspec.json.encode(claims) != payload:
        raise InvalidRecord("not_canonical")
    return claims


def _body(claims: _Claims) -> Body | None:
    raw = bytes(claims.body)
    if raw == b"null":
        if claims.map not in TOMBSTONES:
            raise InvalidRecord("tombstone")
        return None
    try:
        body = msgspec.json.decode(raw, type=BODY_TYPES[claims.map])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidRecord("body") from None
    if msgspec.json.encode(body) != raw:
        raise InvalidRecord("not_canonical")
    if isinstance(body, ForkBody) and len(body.leaves) % 32:
        raise InvalidRecord("leaves")
    if isinstance(body, RevocationBody) and len(body.stands) % STANDING_BYTES:
        raise InvalidRecord("stands")
    if isinstance(body, AdmissionBody | RevocationBody) and len(_decode(body.public_key)) != 32:
        raise InvalidRecord("public_key")
    return body


def _root_key(claims: _Claims) -> bytes:
    if claims.signer != ROOT:
        if claims.root_key:
            raise InvalidRecord("root_key")
        return b""
    key = _decode(claims.root_key)
    if len(key) != 32 or thumbprint(key) != claims.mesh:
        raise InvalidRecord("root_key")
    return key
