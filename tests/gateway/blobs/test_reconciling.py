"""A home whose journal knows blobs that are not there, as after a restore from a backup."""

from hashlib import sha256
from pathlib import Path

from gateway.blobs.reconciling import forget_missing
from outbox.blobfiles import BlobFiles
from outbox.blobref import BlobId
from outbox.ids import Epoch, MeshId, NodeId
from outbox.memory import MemoryStore
from outbox.records import Blob, Identity


def test_what_is_not_there_is_not_known_any_more(tmp_path: Path) -> None:
    files, contents = BlobFiles(tmp_path / "blobs"), (b"here", b"cut short", b"gone")
    store = MemoryStore(Identity(MeshId("m"), NodeId("a"), Epoch("000001-0123456789ab")))
    names = [BlobId(sha256(content).hexdigest()) for content in contents]
    store.begin()
    for name, content in zip(names, contents, strict=True):
        store.put_blob(Blob(sha256=name, bytes=len(content), stored_at_ms=1))
    store.commit()
    files.path(names[0]).write_bytes(contents[0])
    files.path(names[1]).write_bytes(contents[1][:3])
    assert forget_missing(store, files) == 2
    assert [row.sha256 for row in store.blobs()] == names[:1]
    assert forget_missing(store, files) == 0
