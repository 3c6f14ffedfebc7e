import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateroom import base64url
from stateroom.errors import InvalidRecord


@given(st.binary(max_size=64))
def test_round_trip(raw: bytes) -> None:
    assert base64url.decode(base64url.encode(raw)) == raw


@given(st.text(alphabet="AQgw_-+/= \n", max_size=8))
def test_one_text_for_one_value(text: str) -> None:
    try:
        raw = base64url.decode(text)
    except InvalidRecord:
        return
    assert base64url.encode(raw) == text


@pytest.mark.parametrize("text", ["QQ==", "QR", "Q", "+/8", "QUI\n", "é", "\ud800"])
def test_what_the_library_would_take_is_refused(text: str) -> None:
    with pytest.raises(InvalidRecord):
        base64url.decode(text)
