"""What passes the pre-flight is applied without a panic; what pycrdt writes into flat maps passes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycrdt import Array, Doc, Map, Text, merge_updates

from stateroom import preflight, varints
from stateroom.errors import InvalidUpdate

ROOTS = frozenset({"nodes", "agents"})

writes = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(sorted(ROOTS)),
        st.sampled_from("abc"),
        st.one_of(st.none(), st.text(max_size=9)),
    ),
    max_size=20,
)


def play(script, sync_every: int = 3) -> tuple[list[Doc], list[bytes]]:
    """Three documents written at the same time, synced now and then; all updates they emitted."""
    docs = [Doc(client_id=client) for client in (1, 2**31, 2**32 - 1)]
    maps = [{name: doc.get(name, type=Map) for name in ROOTS} for doc in docs]
    updates: list[bytes] = []
    subscriptions = [doc.observe(lambda event: updates.append(event.update)) for doc in docs]
    for number, (who, room_map, key, value) in enumerate(script):
        if value is not None:
            maps[who][room_map][key] = value
        elif key in maps[who][room_map]:
            del maps[who][room_map][key]
        if number % sync_every == 0:
            docs[(who + 1) % 3].apply_update(docs[who].get_update(docs[(who + 1) % 3].get_state()))
    del subscriptions
    return docs, updates


@settings(deadline=None)
@given(writes)
def test_everything_that_pycrdt_writes_into_flat_maps_of_strings_passes(script) -> None:
    docs, updates = play(script)
    for doc in docs:
        updates.append(doc.get_update())
        updates.append(Doc().get_update())
    if updates:
        updates.append(merge_updates(*updates))
        updates.append(merge_updates(*updates[::2]))
    for update in updates:
        preflight.survey(update, ROOTS)


def test_the_survey_names_the_clocks_that_move() -> None:
    doc = Doc(client_id=5)
    nodes = doc.get("nodes", type=Map)
    for number in range(3):
        nodes[str(number)] = "x"
    assert preflight.survey(doc.get_update(), ROOTS).ends == {5: 3}
    assert preflight.clocks(doc.get_state()) == {5: 3}


@settings(max_examples=400, deadline=None)
@given(writes, st.data())
def test_every_mutant_that_passes_is_applied_without_a_panic(script, data: st.DataObject) -> None:
    docs, _ = play(script)
    raw = bytearray(docs[0].get_update())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        match data.draw(st.integers(0, 3)):
            case 0:
                raw[at] = data.draw(st.integers(0, 255))
            case 1:
                raw.insert(at, data.draw(st.integers(0, 255)))
            case 2 if len(raw) > 1:
                del raw[at]
            case _:
                raw[at:at] = raw[at : at + data.draw(st.integers(1, 12))]
    try:
        preflight.survey(bytes(raw), ROOTS)
    except InvalidUpdate:
        return
    target = Doc()
    target.get("nodes", type=Map)
    try:
        target.apply_update(bytes(raw))
    except ValueError:
        return  # a typed refusal is fine; a panic would not be an Exception
    preflight.survey(target.get_update(), ROOTS)
    assert Doc().apply_update(target.get_update()) is None


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_garbage_that_passes_is_applied_without_a_panic(raw: bytes) -> None:
    try:
        preflight.survey(raw, ROOTS)
    except InvalidUpdate:
        return
    try:
        Doc().apply_update(raw)
    except ValueError:
        return


def struct(*parts: bytes | int) -> bytes:
    """An update of one client (7) with one struct at clock 0 and an empty delete set."""
    body = b"".join(part if isinstance(part, bytes) else varints.uint(part) for part in parts)
    return b"\x01\x01\x07\x00" + body + b"\x00"


ROOT_A = b"\x01" + varints.chunk(b"nodes") + varints.chunk(b"a")
GOOD = struct(0x28, ROOT_A, 1, 119, varints.chunk(b"v"))


def test_the_control_of_the_cases_below_passes() -> None:
    assert preflight.survey(GOOD, ROOTS).ends == {7: 1}


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        (b"", "truncated"),
        (b"\x00", "truncated"),
        (b"\x00\x00\x00", "trailing_bytes"),
        (GOOD + b"\x00", "trailing_bytes"),
        (GOOD[:-2], "utf8|count|truncated"),
        (varints.uint(2**28) + b"\x00", "count"),
        (b"\x01" + varints.uint(2**31) + b"\x07\x00\x00", "count"),
        (struct(0, 1), "gc"),
        (struct(0, 2**60 % 2**53), "gc"),
        (struct(0x21, ROOT_A, 2**40), "clock"),
        (struct(0x21, ROOT_A, 0), "empty_range"),
        (struct(10, 2**40), "clock"),
        (struct(10, 0), "empty_range"),
        (
            struct(0x28, b"\x01" + varints.chunk(b"evil") + varints.chunk(b"a"), 1, 119, b"\x00"),
            "unknown_root",
        ),
        (struct(0x28, b"\x00\x01\x01" + varints.chunk(b"a"), 1, 119, b"\x00"), "nested_parent"),
        (struct(0x08, b"\x01" + varints.chunk(b"nodes"), 1, 119, b"\x00"), "not_a_map_entry"),
        (struct(0xE8, 1, 1, 1, 1, 1, 119, b"\x00"), "right_origin"),
        (struct(0x28, ROOT_A, 2, 119, b"\x00", 119, b"\x00"), "value_count"),
        (struct(0x28, ROOT_A, 1, 125, 1), "value_not_string"),
        (struct(0x28, ROOT_A, 1, 117, 1, 117, 0), "value_not_string"),
        (struct(0x28, ROOT_A, 1, 119, varints.chunk(b"x" * 70_000)), "size"),
        *[
            (struct(0x20 | kind, ROOT_A, 1, b"\x00"), "content_kind")
            for kind in (0, 2, 3, 4, 5, 6, 7, 9, 11, 31)
        ],
        (b"\x02\x00\x07\x00\x00\x07\x00\x00", "client_twice"),
        (b"\x00\x01\x07\x01\x00\x00", "empty_range"),
        (b"\x00\x01\x07" + varints.uint(2**31), "count"),
        (b"\x00\x02\x07\x00\x07\x00", "client_twice"),
        (b"\x01\x00" + varints.uint(2**53 - 1)[:-1] + b"\x7f\x00\x00", "varint"),
    ],
)
def test_refused_with_a_reason(update: bytes, reason: str) -> None:
    with pytest.raises(InvalidUpdate) as caught:
        preflight.survey(update, ROOTS)
    assert caught.value.reason in reason.split("|")


@pytest.mark.parametrize("depth", [26_200, 100_000])
def test_nested_values_do_not_reach_the_native_parser(depth: int) -> None:
    with pytest.raises(InvalidUpdate, match="value_not_string"):
        preflight.survey(struct(0x28, ROOT_A, 1, b"\x75\x01" * depth, 119, b"\x00"), ROOTS)


@pytest.mark.parametrize("kind", [Array, Map, Text])
def test_shared_types_as_values_are_refused(kind: type) -> None:
    doc = Doc()
    doc.get("nodes", type=Map)["a"] = kind()
    with pytest.raises(InvalidUpdate, match="content_kind"):
        preflight.survey(doc.get_update(), ROOTS)


@pytest.mark.parametrize("state", [b"", b"\x01", b"\x01\x07", b"\x00\x00", varints.uint(2**28), b"\xff" * 30])
def test_bad_state_vectors_are_refused(state: bytes) -> None:
    with pytest.raises(InvalidUpdate):
        preflight.clocks(state)
