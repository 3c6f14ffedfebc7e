import json
from random import Random
from typing import Any

import pytest

from auth.errors import BadJoinCode
from auth.invites import make_invite_token
from auth.joincodes import JoinCode, _checksum, decode_join_code, encode_join_code
from auth.keys import Jkt
from outbox import base64url
from outbox.ids import MeshId, NodeId

TOKEN = make_invite_token(bytes(range(42)))
CODE = JoinCode(
    urls=("http://127.0.0.1:7777", "https://vps.example"),
    gateway_jkt=Jkt("k" * 43),
    mesh=MeshId("m" * 43),
    expected_node=NodeId("mbp"),
    expires_at_ms=1_800_000_000_000,
    token=TOKEN,
)


def wire(**changes: Any) -> str:
    """A code with a right checksum, whatever it says."""
    members = {
        "v": 1,
        "u": ["http://127.0.0.1:7777"],
        "k": "k" * 43,
        "m": "m" * 43,
        "e": 5,
        "t": TOKEN.text,
    } | changes
    raw = json.dumps({name: value for name, value in members.items() if value is not ...}).encode()
    return "ansj1_" + base64url.encode(_checksum(raw) + raw)


def test_a_code_is_read_back() -> None:
    assert decode_join_code(encode_join_code(CODE)) == CODE
    assert decode_join_code(f"  {encode_join_code(CODE)}\n") == CODE
    assert decode_join_code(wire()).expected_node is None


@pytest.mark.parametrize(
    "changes",
    [
        {"v": 2},
        {"v": ...},
        {"u": []},
        {"u": ["https://vps.example"] * 5},
        {"u": ["http://vps.example"]},
        {"u": ["https://u:p@vps.example"]},
        {"u": ["file:///etc/passwd"]},
        {"u": ["https://169.254.169.254"]},
        {"u": ["https://vps.example", "http://10.0.0.1"]},
        {"k": "k" * 42},
        {"m": "m" * 44},
        {"m": "m" * 42 + "="},
        {"n": "MBP"},
        {"t": "inv_x.y"},
        {"t": ...},
        {"e": "5"},
        {"x": 1},
    ],
    ids=str,
)
def test_codes_that_are_whole_but_wrong_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadJoinCode):
        decode_join_code(wire(**changes))


def test_plain_http_passes_when_asked_for() -> None:
    code = wire(u=["http://10.0.0.1:7777"])
    assert decode_join_code(code, allow_plain=True).urls == ("http://10.0.0.1:7777",)


def test_a_newer_version_says_so() -> None:
    with pytest.raises(BadJoinCode, match="another version") as caught:
        decode_join_code(encode_join_code(CODE).replace("ansj1_", "ansj2_"))
    assert "update" in caught.value.hint


@pytest.mark.parametrize(
    "text", ["", "ansj1_", "ansj1_AAAA", "ansj1_!!", "inv_x", "ansj1_" + "A" * 3000, "\ud800"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(BadJoinCode):
        decode_join_code(text)


def test_one_wrong_or_lost_character_is_noticed() -> None:
    good = encode_join_code(CODE)
    rng = Random(3)
    for place in rng.sample(range(6, len(good)), 60):
        other = "A" if good[place] != "A" else "B"
        for text in (
            good[:place] + other + good[place + 1 :],
            good[:place] + good[place + 1 :],
            good[:place],
        ):
            with pytest.raises(BadJoinCode):
                decode_join_code(text)


def test_repr_shows_no_secret() -> None:
    assert TOKEN.text.split(".")[1] not in repr(CODE)
    assert "vps.example" in repr(CODE)
