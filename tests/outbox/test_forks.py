"""A proof stands by itself: whoever forked is caught, and nobody else can be."""

from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from outbox.chain import Checkpoint, Entry, Head, extend, genesis, leaf, sign_checkpoint
from outbox.forks import ForkProof, find_fork, fold, proves_fork
from outbox.ids import Epoch, MeshId, NodeId, Seq

MESH, NODE, EPOCH = MeshId("m" * 43), NodeId("vps"), Epoch("000001-0123456789ab")
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
START = genesis(MESH, NODE, EPOCH)


def verify(signature: bytes, text: bytes) -> bool:
    try:
        KEY.public_key().verify(signature, text)
    except InvalidSignature:
        return False
    return True


def history(count: int, *, tail: int = 0, after: int = 0) -> list[Entry]:
    """``count`` entries; those after place ``after`` depend on ``tail``: two tails share what is before."""
    return [
        Entry(Seq(seq), b"header", f"{seq + (tail if seq > after else 0)}".encode())
        for seq in range(1, count + 1)
    ]


def checkpoint(entries: list[Entry], at: int) -> Checkpoint:
    return sign_checkpoint(MESH, NODE, head(entries, at), KEY.sign)


def head(entries: list[Entry], at: int) -> Head:
    return extend(START, entries[:at])


def leaves(entries: list[Entry], start: int, end: int) -> list[bytes]:
    return [leaf(entry.header, entry.body) for entry in entries[start:end]]


def proof(known: int, start: int, end: int, *, common: int) -> ForkProof | None:
    """What a reader finds that stands at ``known`` and gets the page ``(start, end]`` of another history."""
    one, two = history(max(known, end)), history(max(known, end), tail=1000, after=common)
    return find_fork(checkpoint(one, known), head(two, start), leaves(two, start, end), checkpoint(two, end))


@given(st.data())
def test_any_page_of_another_history_over_the_place_that_was_read_proves_it(data: st.DataObject) -> None:
    known = data.draw(st.integers(1, 8))
    common = data.draw(st.integers(0, known - 1))
    start, end = data.draw(st.integers(0, known)), data.draw(st.integers(known, 12))
    found = proof(known, start, end, common=common)
    assert found is not None
    assert proves_fork(found, MESH, NODE, verify)
    assert len(found.leaves) == end - known


@given(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8))
def test_one_history_never_proves_a_fork(known: int, start: int, end: int) -> None:
    start, end = sorted((start, end))
    assert proof(known, start, end, common=99) is None


@pytest.mark.parametrize(("known", "start", "end"), [(5, 6, 8), (5, 1, 4)])
def test_a_page_that_does_not_cover_the_place_says_nothing(known: int, start: int, end: int) -> None:
    assert proof(known, start, end, common=0) is None


def test_a_page_that_lies_about_where_it_begins_says_nothing() -> None:
    two = history(8, tail=1000, after=3)
    lie = Head(EPOCH, head(two, 5).seq, b"\x07" * 32)
    assert find_fork(checkpoint(history(5), 5), lie, leaves(two, 5, 8), checkpoint(two, 8)) is None
    hole = leaves(two, 6, 8)
    assert find_fork(checkpoint(history(5), 5), head(two, 5), hole, checkpoint(two, 8)) is None


def test_a_page_of_another_epoch_says_nothing() -> None:
    two = history(8, tail=1000, after=3)
    known = replace(checkpoint(history(5), 5), epoch="000002-0123456789ab")
    assert find_fork(known, head(two, 5), leaves(two, 5, 8), checkpoint(two, 8)) is None


def real() -> ForkProof:
    found = proof(5, 4, 8, common=3)
    assert found is not None
    return found


def changed(side: str, **fields: Any) -> ForkProof:
    found = real()
    return replace(found, **{side: replace(getattr(found, side), **fields)})


@pytest.mark.parametrize(
    "framing",
    [
        replace(real(), other=real().known),
        replace(real(), known=real().other),
        replace(real(), before=real().known.hash),
        replace(real(), before=b""),
        replace(real(), leaves=()),
        replace(real(), leaves=real().leaves[1:]),
        replace(real(), leaves=(*real().leaves[:-1], b"\x00" * 32)),
        replace(real(), leaves=(b"".join(real().leaves),)),
        changed("known", signature=bytes(64)),
        changed("other", signature=bytes(64)),
        changed("known", seq=4),
        changed("other", seq=9),
        changed("known", hash=b"\x01" * 32),
        changed("other", hash=b"\x01" * 32),
        changed("known", epoch="000009-0123456789ab"),
        changed("other", epoch="000009-0123456789ab"),
        changed("known", node="other"),
        changed("other", node="other"),
        changed("known", mesh=MeshId("y" * 43)),
        changed("other", mesh=MeshId("y" * 43)),
    ],
)
def test_nobody_is_framed(framing: ForkProof) -> None:
    assert not proves_fork(framing, MESH, NODE, verify)


def test_a_proof_speaks_of_its_own_node_and_mesh_and_key_only() -> None:
    assert not proves_fork(real(), MESH, NodeId("other"), verify)
    assert not proves_fork(real(), MeshId("y" * 43), NODE, verify)
    assert not proves_fork(real(), MESH, NODE, lambda *_: False)


def test_an_honest_history_cannot_be_shifted_into_a_fork() -> None:
    """True hashes at a wrong place: only the number of leaves tells."""
    one = history(9)
    shifted = ForkProof(checkpoint(one, 5), checkpoint(one, 8), head(one, 4).hash, tuple(leaves(one, 4, 8)))
    assert fold(shifted.before, shifted.leaves) == shifted.other.hash
    assert not proves_fork(shifted, MESH, NODE, verify)


def test_more_leaves_than_a_batch_can_hold_are_not_looked_at() -> None:
    two = history(1002, tail=5000, after=0)
    long = find_fork(checkpoint(history(1), 1), head(two, 0), leaves(two, 0, 1002), checkpoint(two, 1002))
    assert long is not None
    assert not proves_fork(long, MESH, NODE, verify)
