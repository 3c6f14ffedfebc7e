"""Blob files in threads: whoever goes away in the middle of a step leaves the file in order."""

import asyncio
from hashlib import sha256
from pathlib import Path

from gateway.blobs.threads import ThreadedBlobs
from gateway.clock import Clock
from outbox.blobfiles import BlobFiles
from outbox.blobref import BlobId

CONTENT = bytes(1 << 20)
SHA = BlobId(sha256(CONTENT).hexdigest())


async def test_a_step_whose_caller_has_gone_is_finished(tmp_path: Path) -> None:
    blobs = ThreadedBlobs(BlobFiles(tmp_path / "blobs"), Clock())
    draft = await blobs.part(SHA)
    writing = asyncio.ensure_future(draft.write(CONTENT))
    await asyncio.sleep(0)
    writing.cancel()
    await asyncio.wait([writing])
    draft.close()
    async with asyncio.timeout(60):
        while blobs.partial_size(SHA) < len(CONTENT):
            await asyncio.sleep(0.001)
    again = await blobs.part(SHA)
    assert again.digest() == SHA
    await again.sync()
    await again.publish(SHA)
    again.close()
    assert (blobs.size(SHA), await blobs.digest(SHA)) == (len(CONTENT), SHA)


async def test_a_blob_that_is_dropped_is_gone_at_once(tmp_path: Path) -> None:
    files = BlobFiles(tmp_path / "blobs")
    blobs = ThreadedBlobs(files, Clock())
    draft = await blobs.draft("word")
    await draft.write(CONTENT)
    await draft.sync()
    await draft.publish(SHA)
    draft.close()
    blobs.drop(SHA)
    blobs.drop(SHA)
    assert blobs.size(SHA) is None
    assert await blobs.read(SHA, 0, 9) == b""
    assert await blobs.digest(SHA) == ""
    async with asyncio.timeout(60):
        while list(files.entries()):
            await asyncio.sleep(0.001)


async def test_the_sweep_leaves_what_is_young(tmp_path: Path) -> None:
    blobs = ThreadedBlobs(BlobFiles(tmp_path / "blobs"), Clock())
    (await blobs.part(SHA)).close()
    assert await blobs.sweep(frozenset()) == 0
    assert blobs.partial_size(SHA) == 0
