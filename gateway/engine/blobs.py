"""Blobs: kept before they are named, awaited where they are not, let go of when nobody names them.

An event that names a blob is accepted like any other; its turns are dealt when the blob is here and hashes to
its name. The wait burns no delivery and ends at the event's expiry. Nobody's say-so counts for a blob's
content: whoever wrote the file has hashed it.
"""

from gateway.engine.bloblife import BlobDropped, BlobKept, BlobLost, BlobsFit, BlobsFull, KeepBlob
from gateway.engine.inputs import Reply, Send
from gateway.engine.limits import BLOBS_DROPPED_MAX
from gateway.engine.tick import Tick
from gateway.engine.turns import Turns
from outbox.blobref import blob_id, check_ref
from outbox.errors import InvalidEvent, NotFound
from outbox.records import Blob

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
        turns.blob_here(tick, row)
    else:
        _renew(tick, row)
    return BlobKept(request.req, row.sha256, row.bytes)


def lose(tick: Tick, turns: Turns, item: BlobLost) -> None:
    """A blob will not come: the turns that wait for it have failed."""
    if tick.store.blob(item.sha256) is None:
        turns.blob_lost(tick, item.sha256, item.why)


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
