from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.challenges import make_nonce, read_nonce
from auth.errors import ReplayDetected
from auth.limits import NONCE_LIFE_MS
from outbox import base64url
from outbox.ids import NodeId

KEY, VPS, MBP = sha256(b"nonce key").digest(), NodeId("vps"), NodeId("mbp")
TEXT, NONCE = make_nonce(KEY, VPS, MBP, 1000, bytes(range(16)))


def test_an_own_nonce_is_read_back_until_it_expires() -> None:
    assert read_nonce(TEXT, KEY, VPS, MBP, 1000) == NONCE
    assert read_nonce(TEXT, KEY, VPS, MBP, 1000 + NONCE_LIFE_MS - 1) == NONCE


def test_a_late_nonce_is_refused() -> None:
    for late in (0, 1, 10**9):
        with pytest.raises(ReplayDetected):
            read_nonce(TEXT, KEY, VPS, MBP, 1000 + NONCE_LIFE_MS + late)


def test_a_nonce_is_bound_to_key_gateway_and_node() -> None:
    for key, gateway, node in ((bytes(32), VPS, MBP), (KEY, NodeId("lab"), MBP), (KEY, VPS, NodeId("lab"))):
        with pytest.raises(ReplayDetected):
            read_nonce(TEXT, key, gateway, node, 1000)


def test_names_do_not_run_into_each_other() -> None:
    text, _ = make_nonce(KEY, NodeId("ab"), NodeId("c"), 1000, bytes(16))
    with pytest.raises(ReplayDetected):
        read_nonce(text, KEY, NodeId("a"), NodeId("bc"), 1000)


@pytest.mark.parametrize(
    "text", ["", TEXT[:-1], TEXT + "A", TEXT + "=", base64url.encode(bytes(40)), "é", "\ud800", "x" * 9999]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ReplayDetected):
        read_nonce(text, KEY, VPS, MBP, 1000)


@given(st.integers(0, 55), st.integers(1, 255))
def test_no_changed_byte_passes(place: int, flip: int) -> None:
    raw = bytearray(base64url.decode(TEXT))
    raw[place] ^= flip
    with pytest.raises(ReplayDetected):
        read_nonce(base64url.encode(bytes(raw)), KEY, VPS, MBP, 1000)
