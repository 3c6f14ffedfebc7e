"""The messages of the joining protocol, as JSON bodies and headers; both sides use these.

===========================  ======================================================================
``POST CHALLENGE_PATH``      ChallengeRequest → ChallengeAnswer
``POST EXCHANGE_PATH``       ExchangeRequest → TicketAnswer
``POST RENEW_PATH``          RenewRequest → TicketAnswer
``GET`` (WebSocket upgrade)  ``Authorization: AnsibleTicket <jwt>``, ``Ansible-Node-Proof: <jws>``
===========================  ======================================================================

Reading is step 0 of every request: size, JSON, exact fields and types, names. Version 1 since 2026-11.
"""

import re
from collections.abc import Sequence
from typing import ClassVar, TypeVar

import msgspec

from auth import proofs, strictjson
from auth.errors import InvalidRequest, NodeMismatch
from auth.limits import (
    BODY_BYTES_MAX,
    CLIENT_NONCE_CHARS_MAX,
    CLIENT_NONCE_CHARS_MIN,
    ROOM_CHARS_MAX,
    ROOMS_MAX,
)
from auth.redacted import Redacted
from auth.tickets import invalid_ticket
from outbox.errors import InvalidId
from outbox.ids import NodeId, node_id

CHALLENGE_PATH = "/ansible/auth/challenge"
EXCHANGE_PATH = "/ansible/auth/exchange"
RENEW_PATH = "/ansible/auth/renew"

TICKET_SCHEME = "AnsibleTicket"
PROOF_HEADER = "Ansible-Node-Proof"

STATE_ROOM = "state"

_ROOM = re.compile(rf"[a-z][a-z0-9-]{{0,{ROOM_CHARS_MAX - 1}}}", re.ASCII)
_CLIENT_NONCE = re.compile(rf"[A-Za-z0-9_-]{{{CLIENT_NONCE_CHARS_MIN},{CLIENT_NONCE_CHARS_MAX}}}", re.ASCII)

_Message = TypeVar("_Message", bound=msgspec.Struct)


class ChallengeRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Prove yourself to me, and give me a nonce."""

    node_id: NodeId
    client_nonce: str

    def check(self) -> None:
        """Raises InvalidRequest when a field breaks its rule."""
        _check_node(self.node_id)
        if not _CLIENT_NONCE.fullmatch(self.client_nonce):
            raise InvalidRequest("clientNonce is 16 to 64 random bytes in base64url")


class ChallengeAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The nonce and who gave it. Times are RFC 3339 of the gateway's clock."""

    nonce: str
    expires_at: str
    gateway_id: str
    server_time: str
    gateway_proof: str


class ExchangeRequest(Redacted, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An invite for a ticket. A missing proof is not a shape error: it is refused as a wrong proof."""

    shown: ClassVar[tuple[str, ...]] = ("node_id", "requested_rooms")
    invite_token: str
    node_id: NodeId
    nonce: str
    node_proof: str = ""
    requested_rooms: tuple[str, ...] = (STATE_ROOM,)

    def check(self) -> None:
        """Raises InvalidRequest when a field breaks its rule."""
        _check_node(self.node_id)
        check_room_names(self.requested_rooms)

    def proof_hash(self) -> str:
        """What ``rh`` of its proof must be."""
        fields = (self.invite_token, self.node_id, self.nonce)
        return proofs.request_hash(EXCHANGE_PATH, fields, self.requested_rooms)


class RenewRequest(Redacted, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A key for a ticket."""

    shown: ClassVar[tuple[str, ...]] = ("node_id", "requested_rooms")
    node_id: NodeId
    nonce: str
    node_proof: str = ""
    requested_rooms: tuple[str, ...] = (STATE_ROOM,)

    def check(self) -> None:
        """Raises InvalidRequest when a field breaks its rule."""
        _check_node(self.node_id)
        check_room_names(self.requested_rooms)

    def proof_hash(self) -> str:
        """What ``rh`` of its proof must be."""
        return proofs.request_hash(RENEW_PATH, (self.node_id, self.nonce), self.requested_rooms)


class TicketAnswer(Redacted, frozen=True, kw_only=True, rename="camel"):
    """A ticket for one socket, until ``expires_at``."""

    shown: ClassVar[tuple[str, ...]] = ("expires_at", "rooms", "session_id")
    ws_ticket: str
    expires_at: str
    rooms: tuple[str, ...]
    session_id: str


_Request = TypeVar("_Request", ChallengeRequest, ExchangeRequest, RenewRequest)


def read_request(body: bytes, message: type[_Request]) -> _Request:
    """Read and check a request. Raises InvalidRequest, RequestTooLarge."""
    request = strictjson.decode(body, message, bytes_max=BODY_BYTES_MAX)
    request.check()
    return request


def read_answer(body: bytes, message: type[_Message]) -> _Message:
    """Read an answer; members of a newer version are ignored. Raises InvalidRequest, RequestTooLarge."""
    return strictjson.decode(body, message, bytes_max=BODY_BYTES_MAX)


def encode_message(message: msgspec.Struct) -> bytes:
    """Any of these messages as a body."""
    return msgspec.json.encode(message)


def check_room_names(rooms: Sequence[str]) -> None:
    """Raises InvalidRequest unless these are one to eight different room names."""
    if not 1 <= len(set(rooms)) == len(rooms) <= ROOMS_MAX or not all(map(_ROOM.fullmatch, rooms)):
        raise InvalidRequest(f"rooms are 1 to {ROOMS_MAX} different names")


def read_ticket_header(values: Sequence[str]) -> str:
    """The ticket in the values of all ``Authorization`` headers of a request. Raises InvalidTicket."""
    scheme, _, ticket = values[0].partition(" ") if len(values) == 1 else ("", "", "")
    # RFC 9110 section 11.1: the scheme's case does not matter.
    if scheme.lower() != TICKET_SCHEME.lower() or not ticket:
        raise invalid_ticket()
    return ticket


def read_proof_header(values: Sequence[str]) -> str:
    """The proof in the values of all ``Ansible-Node-Proof`` headers of a request. Raises NodeMismatch."""
    if len(values) != 1:
        raise NodeMismatch("one node proof is needed")
    return values[0]


def _check_node(node: str) -> None:
    try:
        node_id(node)
    except InvalidId as error:
        raise InvalidRequest("nodeId is not a node name", hint=error.hint) from None
