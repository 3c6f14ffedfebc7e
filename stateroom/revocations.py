"""Keys that belong to the mesh no more, and what several words about one of them come to.

A revocation stands under ``<thumbprint of the key>/<signer>``: nobody overwrites what somebody else has said.
It is about a *key*; the node's name may come back with another one, unless it is banned. Of several words
about one key

- the root's go before those of seeds, which count only where the root has said nothing;
- the lowest place in the outbox counts, a ban goes before an eviction, and all stands that one of them names.

So words can be put together in any order, any number of times. Nobody takes one back: a signer that says
something else later has said both.

Who holds the key can still sign, and no clock tells when it did. So what it has signed before counts on only
where the revocation names it. Admissions and revocations by a seed whose key was lost stand when the *root*
names them; and only the root ends what the root has admitted, so no two seeds can revoke each other.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from hashlib import sha256

import msgspec

from outbox import base64url
from outbox.chain import Checkpoint, signed_text
from outbox.ids import MeshId, NodeId, Seq, epoch_ordinal
from stateroom.bodies import (
    ROOT,
    STANDING_BYTES,
    AdmissionBody,
    LastPlace,
    RevocationBody,
    RoomMap,
    parse_revocation_key,
)
from stateroom.limits import STANDS_MAX
from stateroom.records import Record, Verify, thumbprint, verify_record

STANDING = (RoomMap.ADMISSIONS, RoomMap.REVOCATIONS, RoomMap.AGENTS)
"""Maps in which a record of a revoked key may go on counting, those first on which more is built; what the
others say is true for a moment."""
_BY_ROOT = frozenset({RoomMap.ADMISSIONS, RoomMap.REVOCATIONS})


class Revocation(msgspec.Struct, frozen=True, kw_only=True):
    """What the words about one key come to."""

    public_key: bytes
    node: NodeId
    by_root: bool
    ban: bool
    last: Checkpoint | None
    next_epoch: int
    said: tuple[str, str]
    """By whom, and why; of several the first by name."""
    stands: frozenset[bytes]


def revocation_of(record: Record) -> Revocation:
    """One word."""
    body = revocation_body(record)
    size = STANDING_BYTES
    return Revocation(
        public_key=base64url.decode(body.public_key),
        node=NodeId(body.node),
        by_root=record.signer == ROOT,
        ban=body.ban,
        last=_checkpoint(record.mesh, NodeId(body.node), body.last) if body.last is not None else None,
        next_epoch=body.next_epoch,
        said=(record.signer, body.reason),
        stands=frozenset(body.stands[at : at + size] for at in range(0, len(body.stands), size)),
    )


def merge(one: Revocation, other: Revocation) -> Revocation:
    """Two words about one key as one: commutative, associative, idempotent."""
    if one.by_root != other.by_root:
        return one if one.by_root else other
    return Revocation(
        public_key=one.public_key,
        node=min(one.node, other.node),
        by_root=one.by_root,
        ban=one.ban or other.ban,
        last=min(one.last, other.last, key=_height),
        next_epoch=max(one.next_epoch, other.next_epoch),
        said=min(one.said, other.said),
        stands=one.stands | other.stands,
    )


def merged(words: Iterable[Record]) -> Revocation | None:
    """All words about one key as one."""
    found = [revocation_of(word) for word in words]
    return reduce(merge, found) if found else None


def severity(record: Record) -> tuple[bool, tuple[int, str, int, bytes, bytes], str]:
    """Of several words of one signer about one key the least of these is shown."""
    word = revocation_of(record)
    return (not word.ban, _height(word.last), record.text)


def revocation_body(record: Record) -> RevocationBody:
    """The body of a record of map ``revocations``, which is never a tombstone."""
    assert isinstance(record.body, RevocationBody)
    return record.body


def may_ever_count(record: Record) -> bool:
    """Whether a word stands where its signer's words about that key stand."""
    of, signer = parse_revocation_key(record.key)
    key = base64url.decode(revocation_body(record).public_key)
    return signer == record.signer and of == thumbprint(key)


def verify_revocation(record: Record, public_key: bytes, verify: Verify) -> bool:
    """Whether this key made the record, and the place that it names was signed by the key that it revokes."""
    last, revoked = revocation_of(record).last, revocation_of(record).public_key
    if last is not None:
        text = signed_text(last.mesh, last.node, last.head)
        if not verify(revoked, last.signature, text):
            return False
    return verify_record(record, public_key, verify)


def standing_mark(text: str) -> bytes:
    """How a revocation names a record that goes on counting."""
    return sha256(text.encode()).digest()[:STANDING_BYTES]


def by_last_keys(valid: Sequence[Record], holds_now: Callable[[Record], bool]) -> list[Record]:
    """What a signer has said with a former key is of no more interest once it speaks with the next."""
    now = [record for record in valid if holds_now(record)]
    live = {record.signer for record in now}
    return now + [record for record in valid if record.signer not in live]


def by_need(records: Iterable[Record]) -> list[Record]:
    """Of what a node has said the part that others build on, the most important first."""
    found = [record for record in records if record.map in STANDING]
    return sorted(found, key=lambda record: (STANDING.index(record.map), record.key, record.rank))


def stands(records: Iterable[Record]) -> bytes:
    """The field of a revocation that keeps these in force, as many as it can name."""
    return b"".join(standing_mark(record.text) for record in records)[: STANDING_BYTES * STANDS_MAX]


def fitting(texts: Iterable[str], chars_max: int) -> tuple[str, ...]:
    """The shortest of them, as many as have so many characters together."""
    found: list[str] = []
    for text in sorted(texts, key=lambda text: (len(text), text)):
        chars_max -= len(text)
        if chars_max < 0:
            break
        found.append(text)
    return tuple(found)


def _height(last: Checkpoint | None) -> tuple[int, str, int, bytes, bytes]:
    if last is None:
        return (0, "", 0, b"", b"")
    return (epoch_ordinal(last.epoch), last.epoch, last.seq, last.hash, last.signature)


def _checkpoint(mesh: MeshId, node: NodeId, last: LastPlace) -> Checkpoint:
    return Checkpoint(mesh, node, last.epoch, Seq(last.seq), last.hash, last.signature)


class Revoked:
    """The keys that the records of a room revoke. Mutable; owned by the index."""

    def __init__(self) -> None:
        self._words: dict[str, dict[str, Record]] = {}
        """By thumbprint and signer."""
        self._by_key: dict[bytes, Revocation] = {}
        self._banned: dict[str, bool] = {}
        """Names that may not come back, and whether the root says so."""

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def say(self, key: str, word: Record | None) -> NodeId | None:
        """What counts under a key of the map is this now; the node whose standing that changes."""
        of, signer = parse_revocation_key(key)
        words = self._words.setdefault(of, {})
        before = merged(words.values())
        words.pop(signer, None)
        if word is not None:
            words[signer] = word
        after = merged(words.values())
        if after == before:
            return None
        if before is not None:
            self._by_key.pop(before.public_key)
        if after is not None:
            self._by_key[after.public_key] = after
        self._banned = {}
        for each in self._by_key.values():
            if each.ban:
                self._banned[each.node] = each.by_root or self._banned.get(each.node, False)
        changed = after or before
        assert changed is not None
        return changed.node

    def all(self) -> list[Revocation]:
        """One for each key, by node and key."""
        return sorted(self._by_key.values(), key=lambda each: (each.node, each.public_key))

    def ends(self, admission: Record) -> bool:
        """Whether an admission is void: what the root has admitted only the root ends."""
        if not self._by_key:
            return False
        assert isinstance(admission.body, AdmissionBody)
        word = self._by_key.get(base64url.decode(admission.body.public_key))
        ended, banned = word is not None, admission.key in self._banned
        if admission.signer != ROOT:
            return ended or banned
        return (word is not None and word.by_root) or self._banned.get(admission.key, False)

    def former_key(self, record: Record) -> bytes | None:
        """The revoked key whose record goes on counting, if a revocation says that of this one."""
        if not self._by_key or record.map not in STANDING:
            return None
        mark = standing_mark(record.text)
        for word in self._by_key.values():
            entitled = word.by_root or record.map not in _BY_ROOT
            if word.node == record.signer and mark in word.stands and entitled:
                return word.public_key
        return None
