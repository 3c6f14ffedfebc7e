import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox import base64url


@given(st.binary(max_size=100))
def test_decoding_gives_back_what_was_encoded(raw: bytes) -> None:
    assert base64url.decode(base64url.encode(raw)) == raw


@given(st.text(alphabet="AQgw_-8/+= \n", max_size=8))
def test_a_value_has_one_text(text: str) -> None:
    try:
        raw = base64url.decode(text)
    except ValueError:
        return
    assert base64url.encode(raw) == text


@pytest.mark.parametrize("text", ["QQ==", "Q", "QR", "Q+Q/", "QUJD\n", " QUJD", "QÜJD", "\ud800"])
def test_padding_junk_and_set_unused_bits_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="base64url"):
        base64url.decode(text)
