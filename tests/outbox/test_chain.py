from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.chain import (
    Checkpoint,
    Entry,
    Head,
    Page,
    check_signature,
    extend,
    follow,
    genesis,
    leaf,
    sign_checkpoint,
    signed_text,
)
from outbox.errors import BadCheckpoint, BrokenChain
from outbox.ids import Epoch, MeshId, NodeId, Seq

MESH, NODE, EPOCH = MeshId("m" * 43), NodeId("vps"), Epoch("000001-0123456789ab")
START = genesis(MESH, NODE, EPOCH)

contents = st.lists(st.tuples(st.binary(max_size=8), st.binary(max_size=8)), min_size=1, max_size=6)


def entries_of(pairs: list[tuple[bytes, bytes]]) -> tuple[Entry, ...]:
    return tuple(Entry(Seq(seq), header, body) for seq, (header, body) in enumerate(pairs, 1))


def page_of(entries: tuple[Entry, ...]) -> Page:
    return Page(EPOCH, entries, sign_checkpoint(MESH, NODE, extend(START, entries), lambda text: text))


def test_golden_hashes() -> None:
    """Version 1 of the chain; a change here would break every stored outbox."""
    assert START.hash.hex() == "44f17ca5011c69bd66d2ccf4acbb57c6e57a2445d009210272449df18820a833"
    assert (
        leaf(b"header", b"body").hex() == "9252e3d2e25a34b58264aa0c0416886193a36754ec01e5ed15c3a7d93e04e29a"
    )
    assert (
        extend(START, [Entry(Seq(1), b"header", b"body")]).hash.hex()
        == "a4e43bb481ca638207a303df04250a9949663baae7b2ee7b83a5e2cae5ee5c5f"
    )
    assert signed_text(MESH, NODE, START) == (
        b"ansible-outbox-checkpoint-v1\x00"
        + b"m" * 43
        + b"\x00vps\x00000001-0123456789ab\x000\x00"
        + START.hash.hex().encode()
    )


@given(contents, st.data())
def test_extending_in_pieces_is_extending_at_once(
    pairs: list[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    entries = entries_of(pairs)
    cut = data.draw(st.integers(0, len(entries)))
    assert extend(extend(START, entries[:cut]), entries[cut:]) == extend(START, entries)


@given(contents, contents)
def test_different_contents_have_different_heads(
    one: list[tuple[bytes, bytes]], two: list[tuple[bytes, bytes]]
) -> None:
    assert (extend(START, entries_of(one)) == extend(START, entries_of(two))) is (one == two)


def test_a_body_may_not_be_moved_into_its_header() -> None:
    assert leaf(b"ab", b"c") != leaf(b"a", b"bc")


@pytest.mark.parametrize("other", [(MeshId("n" * 43), NODE, EPOCH), (MESH, NodeId("mbp"), EPOCH)])
def test_each_stream_begins_at_its_own_genesis(other: tuple[MeshId, NodeId, Epoch]) -> None:
    assert genesis(*other).hash != START.hash


@pytest.mark.parametrize("seqs", [[2], [1, 3], [1, 1], [0]])
def test_holes_and_repeats_break_the_chain(seqs: list[int]) -> None:
    with pytest.raises(BrokenChain):
        extend(START, [Entry(Seq(seq), b"", b"") for seq in seqs])


@given(contents)
def test_a_reader_follows_an_honest_page(pairs: list[tuple[bytes, bytes]]) -> None:
    page = page_of(entries_of(pairs))
    assert follow(START, page) == page.checkpoint.head


@given(contents, st.data())
def test_no_altered_dropped_or_reordered_page_is_followed(
    pairs: list[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    honest = entries_of(pairs)
    forged = data.draw(st.lists(st.sampled_from(pairs), max_size=6).map(entries_of))
    if forged != honest:
        with pytest.raises(BrokenChain):
            follow(START, Page(EPOCH, forged, page_of(honest).checkpoint))


def test_a_page_of_another_epoch_or_place_is_not_followed() -> None:
    page = page_of(entries_of([(b"h", b"b")]))
    elsewhere = Epoch("000002-0123456789ab")
    with pytest.raises(BrokenChain, match="epoch"):
        follow(START, msgspec.structs.replace(page, epoch=elsewhere))
    with pytest.raises(BrokenChain, match="epoch"):
        follow(START, msgspec.structs.replace(page, checkpoint=replaced(page.checkpoint, epoch=elsewhere)))
    with pytest.raises(BrokenChain):
        follow(Head(EPOCH, Seq(1), START.hash), page)


def replaced(checkpoint: Checkpoint, **changes: Any) -> Checkpoint:
    return msgspec.structs.replace(checkpoint, **changes)


def test_a_checkpoint_is_the_word_of_its_node(world: Any) -> None:
    checkpoint = sign_checkpoint(MESH, NODE, START, world.sign)
    check_signature(checkpoint, MESH, NODE, world.verify)


@pytest.mark.parametrize(
    "forgery",
    [
        {"seq": Seq(1)},
        {"hash": b"\x00" * 32},
        {"epoch": Epoch("000002-0123456789ab")},
        {"signature": b"\x00" * 64},
        {"signature": b""},
        {"node": NodeId("mbp")},
        {"mesh": MeshId("n" * 43)},
    ],
)
def test_a_forged_checkpoint_is_refused(world: Any, forgery: dict[str, Any]) -> None:
    checkpoint = replaced(sign_checkpoint(MESH, NODE, START, world.sign), **forgery)
    with pytest.raises(BadCheckpoint):
        check_signature(checkpoint, MESH, NODE, world.verify)
