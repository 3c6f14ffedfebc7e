"""The proof of a fork as a record of the room.

It stands under ``<node>/<epoch>`` and counts when it proves what it says with the key of the node that it
names: neither who wrote it nor when matters, so nobody can hide it and nobody is framed.
"""

from outbox.chain import Checkpoint, Head
from outbox.forks import ForkProof, proves_fork
from outbox.ids import Epoch, MeshId, NodeId, Seq
from stateroom.bodies import ForkBody, SignedHead, fork_key, parse_fork_key
from stateroom.records import Record, Verify

_HASH_BYTES = 32


def fork_body(proof: ForkProof) -> ForkBody:
    """What the record says."""
    return ForkBody(
        known=_signed(proof.known),
        other=_signed(proof.other),
        before=proof.before,
        leaves=b"".join(proof.leaves),
    )


def fork_key_of(proof: ForkProof) -> str:
    """The key under which it stands."""
    return fork_key(proof.known.node, proof.known.epoch)


def fork_proof(record: Record) -> ForkProof:
    """The proof in a record of map ``forks``, not judged."""
    body = fork_body_of(record)
    node, epoch = parse_fork_key(record.key)
    cut = range(0, len(body.leaves), _HASH_BYTES)
    return ForkProof(
        known=_checkpoint(record.mesh, node, epoch, body.known),
        other=_checkpoint(record.mesh, node, epoch, body.other),
        before=body.before,
        leaves=tuple(body.leaves[at : at + _HASH_BYTES] for at in cut),
    )


def fork_body_of(record: Record) -> ForkBody:
    """The body of a record of map ``forks``, which is never a tombstone."""
    assert isinstance(record.body, ForkBody)
    return record.body


def accused(record: Record) -> NodeId:
    """The node that a record of map ``forks`` speaks of."""
    return parse_fork_key(record.key)[0]


def verify_fork(record: Record, public_key: bytes, verify: Verify) -> bool:
    """Whether the record proves that this key wrote two histories."""
    return proves_fork(
        fork_proof(record),
        record.mesh,
        accused(record),
        lambda signature, message: verify(public_key, signature, message),
    )


def _signed(checkpoint: Checkpoint) -> SignedHead:
    return SignedHead(seq=checkpoint.seq, hash=checkpoint.hash, signature=checkpoint.signature)


def _checkpoint(mesh: MeshId, node: NodeId, epoch: Epoch, end: SignedHead) -> Checkpoint:
    head = Head(epoch, Seq(end.seq), end.hash)
    return Checkpoint(mesh, node, head.epoch, head.seq, head.hash, end.signature)
