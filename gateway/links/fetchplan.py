"""Which blob is fetched over which link: from where it was first, else from who has a copy of that outbox.

One blob at a time over one link, the one that a turn waits for before the one that only a copy names, the
smaller one first. Who does not have it now is asked again later; who lied about it is not, for long. When the
node whose event names it says that it has none, and nobody else who is linked has either, it will not come.

Times are milliseconds of the monotonic clock.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gateway.engine.awaited import WRONG_SIZE
from gateway.links.limits import BLOB_AGAIN_MS, BLOBS_AT_ONCE, DISTRUST_MS
from gateway.wire.frames import BlobRefusal
from outbox.blobref import BlobId
from outbox.ids import NodeId
from outbox.records import MissingBlob

GONE, WRONG = "blob_gone", "blob_wrong"
_FINAL = frozenset({BlobRefusal.FORBIDDEN, BlobRefusal.GONE})
"""What the node itself that named a blob takes back only by sending another event."""


class Carrier(NamedTuple):
    """A link over which blobs can come."""

    link: int
    peer: NodeId
    offers: frozenset[NodeId]
    """Outboxes that the peer has copies of."""


class Ask(NamedTuple):
    """What to fetch."""

    link: int
    peer: NodeId
    blob: MissingBlob


class Lost(NamedTuple):
    """What will not come, and why."""

    sha256: BlobId
    why: str


def _rank(blob: MissingBlob) -> tuple[bool, int, BlobId]:
    return not blob.awaited, blob.bytes, blob.sha256


class FetchPlan:
    """What is missing, what is under way, and what was said about it."""

    def __init__(self) -> None:
        self._missing: dict[BlobId, MissingBlob] = {}
        self._under_way: dict[BlobId, int] = {}
        self._denied: dict[tuple[BlobId, NodeId], tuple[int, str]] = {}
        """Until when a peer is not asked, and what it is that it said or did."""
        self._paused_until_ms = 0

    def __bool__(self) -> bool:
        return bool(self._missing)

    def misses(self, blobs: Iterable[MissingBlob]) -> None:
        """All that is missing now."""
        self._missing = {blob.sha256: blob for blob in blobs}
        self._denied = {key: said for key, said in self._denied.items() if key[0] in self._missing}

    def decide(self, carriers: Iterable[Carrier], now_ms: int, *, mirror_room: int) -> list[Ask]:
        """What to fetch now, of what only copies name no more bytes than there is room for."""
        if now_ms < self._paused_until_ms:
            return []
        links = {carrier.link: carrier for carrier in carriers}
        free = {link: carrier for link, carrier in links.items() if link not in self._under_way.values()}
        asks = []
        for blob in sorted(
            self._missing.values(), key=lambda blob: (not blob.awaited, blob.bytes, blob.sha256)
        ):
            if len(self._under_way) >= BLOBS_AT_ONCE or not free:
                break
            if blob.sha256 in self._under_way or (not blob.awaited and blob.bytes > mirror_room):
                continue
            carrier = self._best(blob, free, now_ms)
            if carrier is not None:
                mirror_room -= 0 if blob.awaited else blob.bytes
                del free[carrier.link]
                self._under_way[blob.sha256] = carrier.link
                asks.append(Ask(carrier.link, carrier.peer, blob))
        return asks

    def _best(self, blob: MissingBlob, free: Mapping[int, Carrier], now_ms: int) -> Carrier | None:
        able = [
            carrier
            for carrier in free.values()
            if (carrier.peer == blob.source or blob.source in carrier.offers)
            and self._denied.get((blob.sha256, carrier.peer), (0, ""))[0] <= now_ms
        ]
        return min(able, key=lambda carrier: (carrier.peer != blob.source, carrier.peer), default=None)

    # --- how it went

    def done(self, sha256: BlobId) -> None:
        """It is here."""
        self._under_way.pop(sha256, None)
        self._missing.pop(sha256, None)

    def broke_off(self, sha256: BlobId) -> None:
        """The link is gone, or the disk had enough: whoever is linked goes on with what came."""
        self._under_way.pop(sha256, None)

    def refused(self, sha256: BlobId, peer: NodeId, code: str, now_ms: int) -> None:
        """A peer does not have it, or does not say so, or brings nothing: it is asked again later."""
        self._under_way.pop(sha256, None)
        said = WRONG_SIZE if code == BlobRefusal.SHORT else code
        self._denied[sha256, peer] = (now_ms + BLOB_AGAIN_MS, said)

    def lied(self, sha256: BlobId, peer: NodeId, now_ms: int) -> None:
        """What a peer alone has brought hashes to something else."""
        self._under_way.pop(sha256, None)
        self._denied[sha256, peer] = (now_ms + DISTRUST_MS, WRONG)

    def pause(self, until_ms: int) -> None:
        """Fetch nothing for a while: the disk is full."""
        self._paused_until_ms = until_ms

    def lost(self, carriers: Iterable[Carrier]) -> list[Lost]:
        """What will not come: its own node says so, and of all who are linked nobody could have it."""
        links = list(carriers)
        found = []
        for sha256, blob in self._missing.items():
            why = self._final(blob)
            if why is None or sha256 in self._under_way:
                continue
            others = [each.peer for each in links if blob.source in each.offers and each.peer != blob.source]
            if all((sha256, peer) in self._denied for peer in others):
                found.append(Lost(sha256, f"{why}: {blob.source} does not have it, and nobody here either"))
        return found

    def _final(self, blob: MissingBlob) -> str | None:
        _, code = self._denied.get((blob.sha256, blob.source), (0, ""))
        if code in {WRONG, WRONG_SIZE}:
            return code
        return GONE if code in _FINAL else None
