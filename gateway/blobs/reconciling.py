"""At a start: what the journal says is here and is not, as after a restore from a backup, is missing."""

from outbox.blobfiles import BlobFiles
from outbox.store import Store


def forget_missing(store: Store, files: BlobFiles) -> int:
    """Turns that name such a blob wait for it again, and it is fetched where it can be; returns how many."""
    gone = [row for row in store.blobs() if files.size(row.sha256) != row.bytes]
    if gone:
        store.begin()
        for row in gone:
            store.drop_blob(row.sha256)
        store.commit()
    return len(gone)
