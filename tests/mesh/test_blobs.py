"""Blobs between real gateways: nothing half, nothing twice, nothing for strangers."""

from hashlib import sha256
from pathlib import Path

import pytest

from gateway.crashpoint import CrashPoint
from gateway.errors import Unreachable
from outbox.blobfiles import BlobFiles
from outbox.blobref import BlobId
from tests.mesh.processes import Node

CONTENT = bytes(range(256)) * 4096
SHA = BlobId(sha256(CONTENT).hexdigest())


@pytest.mark.parametrize("point", [CrashPoint.BLOB_AFTER_SYNC, CrashPoint.BLOB_AFTER_RENAME])
async def test_an_upload_survives_the_gateway(vps: Node, tmp_path: Path, point: CrashPoint) -> None:
    """It dies with the whole file on its disk and nobody told: the same upload ends well afterwards."""
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    vps.kill()
    vps.start(point)
    await vps.ready()
    async with vps.client() as gateway:
        with pytest.raises(Unreachable):
            await gateway.blobs.upload(path)
    await vps.dead()
    vps.start()
    await vps.ready()
    async with vps.client() as gateway:
        assert (await gateway.list_blobs()).blobs == []
        await gateway.blobs.upload(path)
        assert [row.sha256 for row in (await gateway.list_blobs()).blobs] == [SHA]
    files = BlobFiles(vps.home.blobs)
    assert files.holds(SHA)
    assert [name for name, _ in files.entries()] == [SHA]
