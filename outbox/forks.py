"""Proof that a node has signed two histories of one epoch.

Two checkpoints that disagree at one ``(node, epoch, seq)`` are such a proof. Batches of two histories seldom
end at the same place, so the second checkpoint may stand further on: the hash of *its* history at the
disputed place and the leaves from there lead to what it signs. Nobody can make these up: each step of the
chain is SHA-256, and the number of leaves is the distance of the two places.

So a proof needs no trust in whoever shows it, and nobody can be framed without the node's own signatures. It
says that one key wrote twice, not why: a backup that was put back, a copy that runs elsewhere and a liar look
alike here.

Source: "The stream" of ``docs/PROTOCOL.md``.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec

from outbox.chain import Checkpoint, Head, Verify, signed_text
from outbox.ids import MeshId, NodeId
from outbox.limits import BATCH_ENTRIES_MAX

_HASH_BYTES = 32


class ForkProof(msgspec.Struct, frozen=True):
    """Two signed heads of one epoch that cannot both be of one history."""

    known: Checkpoint
    other: Checkpoint
    """Of the other history, at the same place or further on."""
    before: bytes
    """The other history's hash at the place of ``known``."""
    leaves: tuple[bytes, ...] = ()
    """What follows there up to ``other``, entry by entry."""


def find_fork(known: Checkpoint, start: Head, leaves: Sequence[bytes], end: Checkpoint) -> ForkProof | None:
    """Whether a page of another history proves a fork against a checkpoint that is held.

    ``start`` is where the page says that it begins (its hash is believed only as far as it leads to the
    signed ``end``), ``leaves`` are its entries. None when the two agree, when the page ends before the
    checkpoint or begins after it, and when it leads nowhere.
    """
    if not (known.epoch == start.epoch == end.epoch and start.seq <= known.seq <= end.seq):
        return None
    if len(leaves) != end.seq - start.seq or fold(start.hash, leaves) != end.hash:
        return None
    common = known.seq - start.seq
    before = fold(start.hash, leaves[:common])
    return None if before == known.hash else ForkProof(known, end, before, tuple(leaves[common:]))


def proves_fork(proof: ForkProof, mesh: MeshId, node: NodeId, verify: Verify) -> bool:
    """Whether a node has provably signed two histories. Never raises for whatever the proof holds."""
    known, other = proof.known, proof.other
    if (known.mesh, known.node, known.epoch) != (mesh, node, other.epoch):
        return False
    if (other.mesh, other.node) != (mesh, node):
        return False
    if len(proof.leaves) != other.seq - known.seq or len(proof.leaves) > BATCH_ENTRIES_MAX:
        return False
    if any(len(part) != _HASH_BYTES for part in (proof.before, known.hash, other.hash, *proof.leaves)):
        return False
    if proof.before == known.hash or fold(proof.before, proof.leaves) != other.hash:
        return False
    return all(verify(end.signature, signed_text(mesh, node, end.head)) for end in (known, other))


def fold(start: bytes, leaves: Iterable[bytes]) -> bytes:
    """The chain's hash after these leaves."""
    digest = start
    for leaf in leaves:
        digest = sha256(digest + leaf).digest()
    return digest
