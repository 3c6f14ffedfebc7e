"""Blobs: kept before they are named, awaited where they are not, let go of when nobody names them.

An event that names a blob is accepted like any other; its turns are dealt when the blob is here and hashes to
its name. The wait burns no delivery and ends at the event's expiry. Nobody's say-so counts for a blob's
content: whoever wrote the file has hashed it.
"""

from itertools import takewhile

from gateway.engine import acks
from gateway.engine.bloblife import BlobDropped, BlobKept, BlobLost, BlobsFit, BlobsFull, KeepBlob
from gateway.engine.errands import Task
from gateway.engine.inputs import Reply, Send
from gateway.engine.limits import BLOBS_DROPPED_MAX
from gateway.engine.tick import Tick
from gateway.engine.turns import Turns
from outbox.blobref import BlobId, blob_id, check_ref
from outbox.errors import InvalidEvent, NotFound
from outbox.records import Blob, Errand

BLOBS_FULL = "blobs_full"


def check_named(tick: Tick, request: Send | Reply) -> None:
    """What an agent sends names a blob that is here, and nothing else. Raises InvalidEvent, NotFound."""
    ref = request.payload_ref
    if ref is None:
        return
    check_ref(ref)
    if bytes(request.payload) != b"null":
        raise InvalidEvent("a message has either a payload or a payloadRef")
    row = tick.store.blob(ref.sha256)
    if row is None:
        raise NotFound(f"blob {ref.sha256} is not here", hint="upload it first: PUT /v1/blobs/{sha256}")
    if row.bytes != ref.bytes:
        raise InvalidEvent(f"blob {ref.sha256} has {row.bytes} bytes, not {ref.bytes}")
    _renew(tick, row)


def keep(tick: Tick, turns: Turns, request: KeepBlob) -> BlobKept:
    """A blob is here: turns that wait for it are dealt. Raises NotFound for one that is only asked for."""
    row = tick.store.blob(blob_id(request.sha256))
    if row is None and not request.written:
        raise NotFound(f"blob {request.sha256} is not here", hint="upload it")
    if row is None:
        row = Blob(sha256=request.sha256, bytes=request.bytes, stored_at_ms=tick.now.wall_ms)
        tick.store.put_blob(row)
        _arrive(tick, turns, row.sha256)
    else:
        _renew(tick, row)
    return BlobKept(request.req, row.sha256, row.bytes)


def lose(tick: Tick, turns: Turns, item: BlobLost) -> None:
    """A blob will not come: the turns that wait for it fail."""
    if tick.store.blob(item.sha256) is None and turns.awaiting(tick, item.sha256, 1):
        row = Errand(Task.LOSS, item.sha256, f"{tick.now.wall_ms} {acks.cut(item.why)}")
        tick.errands.begin(tick, Losing(turns, row))


def _arrive(tick: Tick, turns: Turns, blob: BlobId) -> None:
    """What has not failed yet, for a blob that was said to be lost, is dealt after all."""
    tick.errands.drop(tick, Task.LOSS, blob)
    if turns.awaiting(tick, blob, 1):
        tick.errands.begin(tick, Arriving(turns, Errand(Task.ARRIVAL, blob)))


class Arriving:
    """Deal what waited for a blob that is here. Until all is dealt, what comes for it waits behind."""

    def __init__(self, turns: Turns, row: Errand) -> None:
        self.row = row
        self._turns = turns

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        rows = self._turns.awaiting(tick, BlobId(self.row.subject), most)
        for row in rows:
            self._turns.blob_here(tick, row)
        return len(rows)


class Losing:
    """Let what waited for a blob fail. What was accepted after it was lost waits for it anew."""

    def __init__(self, turns: Turns, row: Errand) -> None:
        self.row = row
        self._turns = turns

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        lost_at_ms, _, why = self.row.detail.partition(" ")
        rows = self._turns.awaiting(tick, BlobId(self.row.subject), most)
        failed = list(takewhile(lambda row: row.accepted_at_ms <= int(lost_at_ms), rows))
        for row in failed:
            self._turns.turn_away(tick, row, why)
        return len(failed)


def note_room(tick: Tick, item: BlobsFull | BlobsFit) -> None:
    """An operator hears that blobs are refused, or wait, until they are not."""
    if isinstance(item, BlobsFull):
        detail = f"{item.refused_bytes} bytes found no room; all may take {item.bytes_max}"
        tick.open_incident(BLOBS_FULL, tick.identity.node, detail)
    else:
        tick.close_incident(BLOBS_FULL, tick.identity.node)


def collect(tick: Tick) -> None:
    """Let go of blobs that nobody names and nobody is about to."""
    before_ms = tick.now.wall_ms - tick.policy.blob_grace_ms
    for row in tick.store.unnamed_blobs(before_ms, BLOBS_DROPPED_MAX):
        tick.store.drop_blob(row.sha256)
        tick.effects.append(BlobDropped(row.sha256))


def _renew(tick: Tick, row: Blob) -> None:
    tick.store.put_blob(Blob(sha256=row.sha256, bytes=row.bytes, stored_at_ms=tick.now.wall_ms))
