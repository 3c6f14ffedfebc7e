"""A cable learns from the first bytes who dials, whatever the request is."""

import pytest

from auth.joiner import Joiner
from auth.keys import SigningKey
from auth.messages import ChallengeRequest, encode_message
from gateway.harness.real.dialler import dialler_of
from outbox.ids import NodeId

MBP = NodeId("mbp")


def test_a_challenge_names_its_node_in_the_body():
    body = encode_message(ChallengeRequest(node_id=MBP, client_nonce="a" * 22))
    assert dialler_of(b"POST /x HTTP/1.1\r\nHost: h\r\n\r\n" + body) == MBP


def test_an_upgrade_names_its_node_in_the_proof():
    headers = Joiner(MBP, SigningKey(bytes(32))).upgrade_headers(NodeId("vps"), "ticket", "/ansible/pipe", 0)
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    assert dialler_of(f"GET /ansible/pipe HTTP/1.1\r\n{head}\r\n".encode()) == MBP


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b'{"nodeId":"NOT A NODE"}',
        b'{"nodeId":"mb',
        b"GET / HTTP/1.1\r\nAnsible-Node-Proof: a.!.c\r\n",
        b"GET / HTTP/1.1\r\nAnsible-Node-Proof: a.e30.c\r\n",
    ],
)
def test_what_names_nobody_names_nobody(start: bytes):
    assert dialler_of(start) is None
