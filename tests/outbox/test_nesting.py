"""How deep JSON is, for documents of any shape, and for what is none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.nesting import is_deeper

VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='[]{}"\\,: a'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='[{"\\'), inner, max_size=3),
    max_leaves=30,
)


def depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


@given(VALUES, st.integers(1, 6), st.sampled_from([None, 1]))
def test_a_document_is_as_deep_as_it_is(value: object, depth_max: int, indent: int | None) -> None:
    assert is_deeper(json.dumps(value, indent=indent).encode(), depth_max) == (depth(value) > depth_max)


@pytest.mark.parametrize(
    ("raw", "deeper"),
    [
        (b"[" * 65, True),
        (b"[" * 64, False),
        (b"{" * 100_000, True),
        (b'{"a":' * 65 + b"1" + b"}" * 65, True),
        (b'"' + b"[" * 100, False),
        (b'"\\" ' + b"[" * 100, False),
        (b'"\\\\"' + b"[" * 100, True),
        (b"[}" * 100, False),
        (b"][" * 40, False),
        (b"[]" * 1_000, False),
        (b"\xff[" * 65, True),
    ],
)
def test_what_is_no_document_is_as_deep_as_a_parser_might_come(raw: bytes, deeper: bool) -> None:
    assert is_deeper(raw, 64) == deeper


@pytest.mark.parametrize("piece", [b'\\"', b'"', b"[]", b"[{}]", b"[", b"]", b'"\\', b"[[]"])
def test_a_long_text_takes_as_long_as_it_is_long(piece: bytes) -> None:
    """What takes its square would take hours for a text of this length, and end the test."""
    for head in (b"[" * 65, b"[" * 65 + b'"'):
        assert is_deeper(head + piece * 500_000, 64) in {True, False}
