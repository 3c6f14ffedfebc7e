import json
from typing import Any

import pytest

from auth.errors import InvalidRequest, InvalidTicket, NodeMismatch, RequestTooLarge
from auth.messages import (
    ChallengeAnswer,
    ChallengeRequest,
    ExchangeRequest,
    RenewRequest,
    TicketAnswer,
    check_room_names,
    encode_message,
    read_answer,
    read_proof_header,
    read_request,
    read_ticket_header,
)
from outbox.ids import NodeId


def exchange(**changes: Any) -> bytes:
    fields = {"inviteToken": "t", "nodeId": "mbp", "nonce": "n", "nodeProof": "p"} | changes
    return json.dumps({name: value for name, value in fields.items() if value is not ...}).encode()


def test_requests_are_read_with_their_defaults() -> None:
    request = read_request(exchange(nodeProof=...), ExchangeRequest)
    assert request == ExchangeRequest(invite_token="t", node_id=NodeId("mbp"), nonce="n")
    assert request.requested_rooms == ("state",)


@pytest.mark.parametrize(
    "node",
    ["node-1\n", "mbp ", "a\x00", "a" * 64, "NODE", "..", "a/b", "%2e", "", "é", 5, [], None, True, "\ud800"],
)
def test_names_outside_the_rule_are_refused(node: Any) -> None:
    with pytest.raises(InvalidRequest):
        read_request(exchange(nodeId=node), ExchangeRequest)
    with pytest.raises(InvalidRequest):
        read_request(json.dumps({"nodeId": node, "nonce": "n"}).encode(), RenewRequest)
    with pytest.raises(InvalidRequest):
        read_request(json.dumps({"nodeId": node, "clientNonce": "A" * 22}).encode(), ChallengeRequest)


def test_the_nearest_legal_name_is_offered() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_request(exchange(nodeId="My Mac"), ExchangeRequest)
    assert "my-mac" in caught.value.hint


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        exchange(admin=True),
        exchange(inviteToken=...),
        exchange(nonce=...),
        exchange(nonce=5),
        exchange(nodeProof=5),
        exchange(nodeProof=None),
        exchange(requestedRooms="state"),
        exchange(requestedRooms=[]),
        exchange(requestedRooms=["state", "state"]),
        exchange(requestedRooms=["State"]),
        exchange(requestedRooms=[f"r{number}" for number in range(9)]),
        exchange()[:-1] + b',"inviteToken":"u"}',
    ],
)
def test_other_shapes_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read_request(body, ExchangeRequest)


def test_size_is_limited() -> None:
    with pytest.raises(RequestTooLarge):
        read_request(exchange(nonce="n" * 17_000), ExchangeRequest)
    read_request(exchange(nonce="n" * 16_000), ExchangeRequest)


@pytest.mark.parametrize("nonce", ["", "A" * 21, "A" * 87, "A" * 21 + "=", "A" * 22 + "\n"])
def test_a_client_nonce_is_long_enough(nonce: str) -> None:
    with pytest.raises(InvalidRequest):
        read_request(json.dumps({"nodeId": "mbp", "clientNonce": nonce}).encode(), ChallengeRequest)


def test_answers_of_a_newer_gateway_are_read() -> None:
    raw = b'{"nonce":"n","expiresAt":"e","gatewayId":"vps","serverTime":"s","gatewayProof":"p","new":1}'
    assert read_answer(raw, ChallengeAnswer).gateway_id == "vps"


def test_messages_are_camel_case_on_the_wire() -> None:
    answer = TicketAnswer(ws_ticket="t", expires_at="e", rooms=("state",), session_id="s")
    assert encode_message(answer) == b'{"wsTicket":"t","expiresAt":"e","rooms":["state"],"sessionId":"s"}'


def test_room_names() -> None:
    check_room_names(["state", "cursors"])
    with pytest.raises(InvalidRequest):
        check_room_names(["../state"])


@pytest.mark.parametrize(
    "values",
    [
        [],
        [""],
        ["Bearer x"],
        ["AnsibleTicket"],
        ["AnsibleTicket "],
        ["AnsibleTicket a", "AnsibleTicket a"],
        ["x"],
    ],
)
def test_only_one_ticket_header_is_a_ticket(values: list[str]) -> None:
    with pytest.raises(InvalidTicket):
        read_ticket_header(values)


def test_the_headers_are_read() -> None:
    assert read_ticket_header(["ansibleticket a.b.c"]) == "a.b.c"
    assert read_proof_header(["p"]) == "p"
    for values in ([], ["p", "p"]):
        with pytest.raises(NodeMismatch):
            read_proof_header(values)


def test_repr_shows_no_secret() -> None:
    request = ExchangeRequest(
        invite_token="hidden", node_id=NodeId("mbp"), nonce="hidden", node_proof="hidden"
    )
    renew = RenewRequest(node_id=NodeId("mbp"), nonce="hidden", node_proof="hidden")
    answer = TicketAnswer(ws_ticket="hidden", expires_at="e", rooms=(), session_id="s")
    for message in (request, renew, answer):
        assert "hidden" not in repr(message)
