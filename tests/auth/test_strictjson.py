import contextlib
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth import strictjson
from auth.errors import InvalidRequest, RequestTooLarge


class Pair(msgspec.Struct, forbid_unknown_fields=True):
    a: int
    b: str = ""


def read(raw: bytes) -> Pair:
    return strictjson.decode(raw, Pair, bytes_max=200)


def test_a_record_is_read() -> None:
    assert read(b' {"a": -5, "b": "\xc3\xa9 [{\\" "}\n') == Pair(-5, 'é [{" ')


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b'{"a":1,"a":1}',
        b'{"a":1,"\\u0061":1}',
        b'{"a":1.0}',
        b'{"a":1e2}',
        b'{"a":1e400}',
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":true}',
        b'{"a":"1"}',
        b'{"a":9007199254740992}',
        b'{"a":' + b"9" * 150 + b"}",
        b'{"a":1,"b":null}',
        b'{"a":1,"admin":true}',
        b'{"a":1,"b":"\\ud800"}',
        b'{"a":1,"b":"\xff"}',
        b'\xef\xbb\xbf{"a":1}',
        '{"a":1}'.encode("utf-16"),
        b'{"a":1}\x00',
        b'{"a":1}{"a":1}',
        b'{"a":1,}',
        b'{"a":1,"b":"\n"}',
        b"[" * 190,
        b'{"a":' * 38,
        b'{"a":1,"b":"' + b"[" * 100,
    ],
)
def test_what_two_readers_could_read_differently_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read(raw)


def test_brackets_inside_strings_are_no_depth() -> None:
    assert read(json.dumps({"a": 1, "b": "[" * 100}).encode()).b == "[" * 100


def test_size_is_judged_before_anything_else() -> None:
    with pytest.raises(RequestTooLarge):
        read(b"[" * 201)


def test_a_thousand_digits_and_deep_nesting_do_not_reach_a_parser() -> None:
    for raw in (b'{"a":' + b"1" * 5000 + b"}", b"[" * 100_000, b'{"a":' * 100_000):
        with pytest.raises(InvalidRequest):
            strictjson.decode(raw, Pair, bytes_max=10**7)


@pytest.mark.parametrize("tail", [b"", b"\\", b'"', b"[" * 100, b"\n"])
@pytest.mark.parametrize("piece", [b'\\"', b'"', b'"a', b"\\\\", b'"\\', b"a", b"[]", b"\\\n"])
def test_a_long_text_takes_as_long_as_it_is_long(piece: bytes, tail: bytes) -> None:
    """What takes its square would take hours for a text of this length, and end the test."""
    for head in (b'"', b'{"a":1,"b":"', b"[" * 10):
        with pytest.raises(InvalidRequest):
            strictjson.decode(head + piece * 500_000 + tail, Pair, bytes_max=10**7)


@given(st.binary(max_size=60))
def test_any_bytes_give_a_record_or_the_one_error(raw: bytes) -> None:
    with contextlib.suppress(InvalidRequest):
        assert isinstance(read(raw), Pair)
