import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateroom import varints
from stateroom.errors import InvalidMessage
from stateroom.limits import CLOCK_MAX
from stateroom.varints import Reader


@given(st.integers(0, CLOCK_MAX))
def test_round_trip(value: int) -> None:
    reader = Reader(varints.uint(value))
    assert reader.uint() == value
    reader.end()


@given(st.binary(max_size=12))
def test_one_form_for_one_number(raw: bytes) -> None:
    reader = Reader(raw)
    try:
        value = reader.uint()
    except InvalidMessage:
        return
    assert raw.startswith(varints.uint(value))
    assert len(raw) - reader.left == len(varints.uint(value))


@pytest.mark.parametrize("raw", [b"", b"\x80", b"\x80\x00", b"\xff" * 8, b"\xff" * 7 + b"\x10", b"\xff" * 9])
def test_truncated_overlong_and_huge_numbers_are_refused(raw: bytes) -> None:
    with pytest.raises(InvalidMessage):
        Reader(raw).uint()


def test_counts_and_sizes_never_exceed_what_is_left() -> None:
    with pytest.raises(InvalidMessage, match="count"):
        Reader(b"\x02a").count()
    with pytest.raises(InvalidMessage, match="size"):
        Reader(b"\x02ab").chunk(1)
    with pytest.raises(InvalidMessage, match="utf8"):
        Reader(b"\x01\xff").text(9)
    with pytest.raises(InvalidMessage, match="trailing"):
        Reader(b"x").end()


@given(st.text(max_size=20))
def test_the_length_of_a_text_is_in_bytes(text: str) -> None:
    assert Reader(varints.chunk(text.encode())).text(100) == text
