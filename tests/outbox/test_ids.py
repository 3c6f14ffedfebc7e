import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.errors import InvalidId
from outbox.ids import (
    agent_id,
    epoch,
    epoch_ordinal,
    event_id,
    event_id_bytes,
    event_id_from_bytes,
    make_epoch,
    make_event_id,
    node_id,
    suggest_name,
)


@pytest.mark.parametrize("name", ["a", "0", "vps", "lab-2.home_x", "a" * 63])
def test_names_that_are_legal(name: str) -> None:
    assert node_id(name) == name
    assert agent_id(name) == name


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("", ""),
        ("VPS", "vps"),
        ("-a", "a"),
        ("a" * 64, "a" * 63),
        ("my laptop", "my-laptop"),
        ("vps\n", "vps"),
        ("é", ""),
        ("\u0661", ""),
        ("a\x00b", "a-b"),
    ],
)
def test_names_that_are_not(name: str, suggestion: str) -> None:
    with pytest.raises(InvalidId) as caught:
        node_id(name)
    assert caught.value.suggestion == suggestion
    assert suggestion in caught.value.hint
    with pytest.raises(InvalidId):
        agent_id(name)


@given(st.text(max_size=100))
def test_a_suggestion_is_legal_or_empty(text: str) -> None:
    suggestion = suggest_name(text)
    assert suggestion == "" or node_id(suggestion) == suggestion


@given(st.binary(min_size=16, max_size=16))
def test_event_ids_survive_the_disk(raw: bytes) -> None:
    assert event_id_bytes(event_id(event_id_from_bytes(raw))) == raw


@given(st.integers(0, (1 << 48) - 1), st.binary(min_size=10, max_size=10))
def test_made_event_ids_are_uuid_version_7(wall_ms: int, entropy: bytes) -> None:
    made = event_id(make_event_id(wall_ms, entropy))
    parsed = uuid.UUID(made[4:])
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert int.from_bytes(parsed.bytes[:6]) == wall_ms


@given(st.binary(min_size=10, max_size=10))
def test_all_random_bits_of_an_event_id_come_from_its_entropy(entropy: bytes) -> None:
    fixed = 0xF000_C000_0000_0000_0000
    tail = int.from_bytes(event_id_bytes(make_event_id(0, entropy))[6:])
    assert tail & ~fixed == int.from_bytes(entropy) & ~fixed


@given(
    st.integers(0, (1 << 48) - 2), st.binary(min_size=10, max_size=10), st.binary(min_size=10, max_size=10)
)
def test_later_event_ids_sort_later(wall_ms: int, one: bytes, two: bytes) -> None:
    assert make_event_id(wall_ms, one) < make_event_id(wall_ms + 1, two)


@pytest.mark.parametrize(
    "text", ["", "evt_", "evt_" + "0" * 31, "evt_" + "F" * 32, "evt_" + "0" * 33, "0" * 36]
)
def test_texts_that_are_no_event_id(text: str) -> None:
    with pytest.raises(InvalidId):
        event_id(text)


@given(st.integers(0, 999_999), st.binary(min_size=6, max_size=6))
def test_epochs_keep_their_ordinal(ordinal: int, entropy: bytes) -> None:
    name = make_epoch(ordinal, entropy)
    assert epoch(name) == name
    assert epoch_ordinal(name) == ordinal


def test_epochs_sort_by_ordinal() -> None:
    assert make_epoch(9, b"\xff" * 6) < make_epoch(10, b"\x00" * 6)


@pytest.mark.parametrize("text", ["", "1-0123456789ab", "000001-0123456789AB", "000001-0123456789ab\n"])
def test_texts_that_are_no_epoch(text: str) -> None:
    with pytest.raises(InvalidId):
        epoch(text)
