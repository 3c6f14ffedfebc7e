"""The hash chain over an outbox and the signed checkpoints that end each batch.

``leaf = SHA-256(SHA-256(header) || SHA-256(body))`` and ``hash = SHA-256(previous hash || leaf)``, from a
genesis of mesh, node and epoch. Hashing the halves apart lets a reader check an entry whose body did not
travel.

A checkpoint is signed raw (Ed25519) over a domain-separated text, so that a signature of one kind can never
pass as another: the node key also signs JWS, whose signing input always begins with ``eyJ``.

Version 1 since 2026-11.
"""

from collections.abc import Callable, Iterable
from hashlib import sha256

import msgspec

from outbox.errors import BadCheckpoint, BrokenChain
from outbox.ids import Epoch, MeshId, NodeId, Seq

Sign = Callable[[bytes], bytes]
"""Signs bytes with the node's key: 64 bytes of Ed25519."""

Verify = Callable[[bytes, bytes], bool]
"""``verify(signature, message)`` with one node's public key; False for a bad signature, never raises."""

_GENESIS = b"ansible-outbox-genesis-v1\x00"
_CHECKPOINT = b"ansible-outbox-checkpoint-v1\x00"


class Entry(msgspec.Struct, frozen=True, gc=False, tag=True, tag_field="t"):
    """One place in an outbox: the verbatim bytes of header and body."""

    seq: Seq
    header: bytes
    body: bytes

    @property
    def leaf(self) -> bytes:
        """Its hash."""
        return leaf(self.header, self.body)


class Stub(msgspec.Struct, frozen=True, gc=False, tag=True, tag_field="t"):
    """An entry whose body did not travel: all that a reader needs who only follows the chain past it."""

    seq: Seq
    header: bytes
    body_hash: bytes
    """SHA-256."""

    @property
    def leaf(self) -> bytes:
        """The hash of the whole entry."""
        return sha256(sha256(self.header).digest() + self.body_hash).digest()


class Head(msgspec.Struct, frozen=True, gc=False):
    """How far a stream goes (or a reader has come): the chain's hash after entry ``seq``."""

    epoch: Epoch
    seq: Seq
    hash: bytes


class Checkpoint(msgspec.Struct, frozen=True, gc=False):
    """A head signed by the node that owns the stream."""

    mesh: MeshId
    node: NodeId
    epoch: Epoch
    seq: Seq
    hash: bytes
    signature: bytes

    @property
    def head(self) -> Head:
        """The head this checkpoint vouches for."""
        return Head(self.epoch, self.seq, self.hash)


class Page(msgspec.Struct, frozen=True, gc=False):
    """Consecutive entries of one epoch that end in a checkpoint."""

    epoch: Epoch
    entries: tuple[Entry, ...]
    checkpoint: Checkpoint
    before: bytes = b""
    """The chain's hash before the first entry, by which a fork is proved; empty where it is not known."""


class Excerpt(msgspec.Struct, frozen=True, gc=False):
    """A page as it travels: bodies that its reader did not ask for are left out."""

    epoch: Epoch
    entries: tuple[Entry | Stub, ...]
    checkpoint: Checkpoint
    before: bytes = b""


def genesis(mesh: MeshId, node: NodeId, epoch: Epoch) -> Head:
    """The head of an outbox that has no entry yet."""
    text = b"\x00".join(part.encode() for part in (mesh, node, epoch))
    return Head(epoch, Seq(0), sha256(_GENESIS + text).digest())


def leaf(header: bytes, body: bytes) -> bytes:
    """The hash of one entry."""
    return sha256(sha256(header).digest() + sha256(body).digest()).digest()


def extend(head: Head, entries: Iterable[Entry | Stub]) -> Head:
    """The head after these entries. Raises BrokenChain when they do not follow on without a hole."""
    seq, digest = int(head.seq), head.hash
    for entry in entries:
        seq += 1
        if entry.seq != seq:
            raise BrokenChain(f"entry {entry.seq} stands where {seq} belongs")
        # the leaf, written out: every entry is hashed by its writer and by each reader
        body_hash = sha256(entry.body).digest() if isinstance(entry, Entry) else entry.body_hash
        digest = sha256(digest + sha256(sha256(entry.header).digest() + body_hash).digest()).digest()
    return Head(head.epoch, Seq(seq), digest)


def signed_text(mesh: MeshId, node: NodeId, head: Head) -> bytes:
    """What a checkpoint's signature covers."""
    fields = (mesh, node, head.epoch, str(head.seq), head.hash.hex())
    return _CHECKPOINT + b"\x00".join(field.encode() for field in fields)


def sign_checkpoint(mesh: MeshId, node: NodeId, head: Head, sign: Sign) -> Checkpoint:
    """Vouch for a head with the node's key."""
    signature = sign(signed_text(mesh, node, head))
    return Checkpoint(mesh, node, head.epoch, head.seq, head.hash, signature)


def check_signature(checkpoint: Checkpoint, mesh: MeshId, node: NodeId, verify: Verify) -> None:
    """Raises BadCheckpoint unless it is this stream's and signed by this key."""
    if (checkpoint.mesh, checkpoint.node) != (mesh, node):
        raise BadCheckpoint(f"the checkpoint is of {checkpoint.node}, not of {node}")
    if not verify(checkpoint.signature, signed_text(mesh, node, checkpoint.head)):
        raise BadCheckpoint(f"the checkpoint of {node} is not signed by its key")


def follow(head: Head, page: Page | Excerpt) -> Head:
    """A reader's next head after a page whose signature was checked.

    Raises BrokenChain when the page starts elsewhere, has a hole, or does not hash to its checkpoint.
    """
    if page.epoch != head.epoch or page.checkpoint.epoch != head.epoch:
        raise BrokenChain(f"the page is of epoch {page.epoch}, the reader stands in {head.epoch}")
    reached = extend(head, page.entries)
    if reached != page.checkpoint.head:
        raise BrokenChain(f"entries up to {reached.seq} do not hash to their checkpoint")
    return reached
