"""Every blob of a home against its name."""

import sys

import click
import msgspec

from gateway.home import Home


class BlobsChecked(msgspec.Struct, frozen=True):
    """What was found to be in order."""

    blobs: int
    bytes: int


def check_blobs(home: Home) -> BlobsChecked:
    """Hash all of them, with a bar on a terminal. Raises BlobDamaged, naming each that is not in order."""
    from gateway.blobs.errors import BlobDamaged
    from outbox.blobfiles import BlobFiles
    from outbox.reader import JournalReader

    reader = JournalReader.open(home.journal)
    try:
        rows = reader.blobs()
        files, wrong = BlobFiles(home.blobs), []
        with click.progressbar(
            length=sum(row.bytes for row in rows),
            label="hashing",
            file=sys.stderr,
            hidden=not sys.stderr.isatty(),
        ) as bar:
            for row in rows:
                if not files.holds(row.sha256) and reader.blob(row.sha256) is not None:
                    wrong.append(row.sha256)  # one that was let go of meanwhile is in order
                bar.update(row.bytes)
    finally:
        reader.close()
    if wrong:
        raise BlobDamaged(
            f"{len(wrong)} of {len(rows)} blobs are missing or altered: {', '.join(wrong[:5])}",
            hint="send them again: gateway blob put FILE",
        )
    return BlobsChecked(len(rows), sum(row.bytes for row in rows))
