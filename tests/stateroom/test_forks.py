"""A fork in the room: whoever tells it is believed for the proof, and for nothing else."""

import itertools

import pytest
from msgspec.structs import replace

from outbox.ids import Epoch, NodeId
from stateroom.bodies import RoomMap
from stateroom.errors import InvalidRecord
from stateroom.forks import accused, fork_body, fork_key_of, fork_proof, verify_fork
from stateroom.index import Index
from stateroom.limits import FORKS_PER_NODE_MAX
from stateroom.records import parse_record
from stateroom.view import ForkView

B, EPOCH = NodeId("b"), Epoch("000001-0123456789ab")


def tell(index: Index, text: str) -> bool:
    record = parse_record(text)
    return index.offer(record.map.value, record.key, text) is not None


def test_a_proof_survives_its_record(mesh) -> None:
    proof = mesh.fork("b", leaves=1000)
    record = parse_record(mesh.fork_record(proof, "c"))
    assert fork_proof(record) == proof
    assert (accused(record), record.key) == (B, fork_key_of(proof))


def test_anybody_may_tell_and_everybody_sees(mesh) -> None:
    index = mesh.index("b", "c")
    assert tell(index, mesh.fork_record(mesh.fork("b"), "c"))
    view = index.view({})
    assert view.forks == {B: (ForkView(epoch=EPOCH, seq=5),)}
    assert view.forked(B, EPOCH)
    assert not view.forked(B, Epoch("000002-0123456789ab"))
    assert not view.forked(NodeId("c"), EPOCH)


def test_the_proof_counts_whoever_signed_the_record_around_it(mesh) -> None:
    index = mesh.index("b")
    assert tell(index, mesh.fork_record(mesh.fork("b"), "nobody"))
    assert index.view({}).forked(B, EPOCH)


@pytest.mark.parametrize("change", ["branch", "signature", "shifted", "equal", "other key"])
def test_nobody_is_framed(mesh, change: str) -> None:
    proof = mesh.fork("b")
    framing = {
        "branch": replace(proof, before=bytes(32)),
        "signature": replace(proof, other=replace(proof.other, signature=bytes(64))),
        "shifted": replace(proof, leaves=proof.leaves[1:]),
        "equal": replace(proof, other=proof.known, before=proof.known.hash, leaves=()),
        "other key": replace(
            mesh.fork("c"), known=replace(mesh.fork("c").known, node=B), other=mesh.fork("c").other
        ),
    }[change]
    index = mesh.index("b", "c")
    assert not tell(index, mesh.fork_record(framing, "c"))
    assert index.rejects["no_proof"] == 1
    assert not index.view({}).forks


def test_a_proof_under_another_name_or_epoch_is_none(mesh) -> None:
    index = mesh.index("b", "c")
    proof = mesh.fork("b")
    for key in (f"c/{EPOCH}", "b/000002-0123456789ab"):
        assert not tell(index, mesh.fork_record(proof, "c", key=key))


@pytest.mark.parametrize("key", ["b", "b/", "b/junk", "/000001-0123456789ab", "B/000001-0123456789ab"])
def test_a_key_names_a_node_and_an_epoch(mesh, key: str) -> None:
    with pytest.raises(InvalidRecord):
        mesh.fork_record(mesh.fork("b"), "c", key=key)


def test_half_a_hash_is_refused(mesh) -> None:
    body = replace(fork_body(mesh.fork("b")), leaves=bytes(33))
    with pytest.raises(InvalidRecord, match="leaves"):
        mesh.fork_record(mesh.fork("b"), "c", body=body)


def test_a_fork_waits_for_the_admission_of_the_accused(mesh) -> None:
    index = mesh.index()
    assert not tell(index, mesh.fork_record(mesh.fork("b"), "c"))
    framing = replace(mesh.fork("b", epoch="000002-0123456789ab"), before=bytes(32))
    assert not tell(index, mesh.fork_record(framing, "c"))
    assert tell(index, mesh.admission("b"))
    assert index.view({}).forks == {B: (ForkView(epoch=EPOCH, seq=5),)}


def test_one_proof_is_kept_and_the_order_does_not_matter(mesh) -> None:
    texts = [
        mesh.fork_record(mesh.fork("b", other=other), by, counter=counter)
        for other, by, counter in (("b", "c", 4), ("c", "c", 2), ("b", "seed", 3))
    ]
    admissions = [mesh.admission(node) for node in ("b", "c")]
    digests = set()
    for order in itertools.permutations([*texts, *admissions]):
        index = mesh.index()
        for text in order:
            tell(index, text)
        digests.add(index.digest())
        assert len(index.records(RoomMap.FORKS)) == 1
    assert len(digests) == 1


def test_forks_of_one_node_are_bounded_and_false_ones_take_no_room(mesh) -> None:
    index = mesh.index("b", "c")
    for number in range(2 * FORKS_PER_NODE_MAX):
        framing = replace(mesh.fork("b", epoch=f"{number:06d}-0123456789ab"), before=bytes(32))
        assert not tell(index, mesh.fork_record(framing, "c"))
    told = [
        tell(index, mesh.fork_record(mesh.fork("b", epoch=f"{number:06d}-0123456789ab"), "c"))
        for number in range(FORKS_PER_NODE_MAX + 3)
    ]
    assert sum(told) == FORKS_PER_NODE_MAX == len(index.view({}).forks[B])
    assert tell(index, mesh.fork_record(mesh.fork("c"), "c")), "others are not crowded out"


def test_a_key_that_changed_leaves_the_proofs_of_the_old_one_behind(mesh) -> None:
    index = mesh.index("b")
    tell(index, mesh.fork_record(mesh.fork("b"), "b"))
    tell(index, mesh.admission("b", key="another", counter=2))
    assert not index.view({}).forks


def test_verification_asks_for_the_key_it_was_given(mesh) -> None:
    record = parse_record(mesh.fork_record(mesh.fork("b"), "c"))
    asked = []

    def verify(key: bytes, signature: bytes, message: bytes) -> bool:
        asked.append(key)
        return True

    assert verify_fork(record, b"k" * 32, verify)
    assert asked == [b"k" * 32] * 2
