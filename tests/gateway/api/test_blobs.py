import msgspec

from gateway.api.blobs import blob_row
from outbox.blobref import BlobId
from outbox.records import Blob


def test_a_row_is_shown_in_camel_case() -> None:
    row = blob_row(Blob(sha256=BlobId("ab" * 32), bytes=5, stored_at_ms=7))
    assert msgspec.to_builtins(row) == {"sha256": "ab" * 32, "bytes": 5, "storedAtMs": 7}
