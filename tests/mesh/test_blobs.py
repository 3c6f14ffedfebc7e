"""Blobs between real gateways: nothing half, nothing twice, through kills, at a flat memory."""

import random
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

import pytest

from gateway.crashpoint import CrashPoint
from gateway.errors import Unreachable
from outbox.blobfiles import BlobFiles
from outbox.blobref import BlobId, BlobRef
from tests.mesh.conftest import MakeNode
from tests.mesh.processes import Node, until

MIB = 1024 * 1024
CONTENT = bytes(range(256)) * 4096
SHA = BlobId(sha256(CONTENT).hexdigest())


def big_file(path: Path, mib: int) -> Path:
    """Content that repeats nowhere, so that no piece passes for another."""
    chance = random.Random(mib)
    with path.open("wb") as file:
        for _ in range(mib):
            file.write(chance.randbytes(MIB))
    return path


def has(node: Node, sha256: BlobId) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        async with node.client() as gateway:
            return any(row.sha256 == sha256 for row in (await gateway.list_blobs()).blobs)

    return look


def has_some(node: Node, sha256: BlobId, size: int) -> Callable[[], Awaitable[bool]]:
    """So many bytes of a blob have come."""
    part = node.home.blobs / f"{sha256}.part"

    async def look() -> bool:
        return (part.exists() and part.stat().st_size >= size) or (node.home.blobs / sha256).exists()

    return look


def resident_mib(node: Node) -> int:
    """The most that the process ever held in memory."""
    assert node.process is not None
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


async def send(node: Node, agent: str, to: str, path: Path) -> BlobRef:
    async with node.client() as gateway:
        ref = await gateway.agent(agent).blobs.upload(path)
        await gateway.agent(agent).send(to, file=ref)
        return ref


async def read(node: Node, agent: str) -> str:
    """The hash of the file that an agent is sent next; its turn is done."""
    digest = sha256()
    async with node.client() as gateway, gateway.agent(agent).turns("reader") as turns:
        turn = await anext(aiter(turns))
        async for piece in turn.open_blob():
            digest.update(piece)
        await turn.ok()
    return digest.hexdigest()


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


@pytest.mark.parametrize("dying", ["mbp", pytest.param("vps", marks=pytest.mark.long)])
async def test_a_transfer_goes_on_after_a_kill(pair: tuple[Node, Node], tmp_path: Path, dying: str) -> None:
    """64 MiB from ada to bob; one side is killed in the middle and comes back."""
    vps, mbp = pair
    path = big_file(tmp_path / "file", 64)
    ref = await send(vps, "ada", "bob", path)
    await until(has_some(mbp, ref.sha256, 8 * MIB), 60, "the transfer is under way")
    victim = mbp if dying == "mbp" else vps
    victim.kill()
    victim.start()
    await victim.ready()
    await until(has(mbp, ref.sha256), 60, "the blob is whole")
    assert await read(mbp, "bob") == ref.sha256
    assert BlobFiles(mbp.home.blobs).holds(ref.sha256)


async def test_laptops_that_are_never_online_together_exchange_a_file(
    pair: tuple[Node, Node], make_node: MakeNode, tmp_path: Path
) -> None:
    vps, mbp = pair
    lab = make_node("lab")
    await lab.join(vps)
    lab.start()
    await lab.ready()
    await lab.add_agents("cat")
    await mbp.sees("cat")
    await vps.sees("cat")
    lab.kill()
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    await send(mbp, "bob", "cat", path)
    await until(has(vps, SHA), 60, "the seed has it")
    mbp.kill()
    lab.start()
    await lab.ready()
    assert await read(lab, "cat") == SHA


@pytest.mark.long
async def test_a_gibibyte_takes_no_memory(pair: tuple[Node, Node], tmp_path: Path) -> None:
    """1 GiB through both gateways, each killed once; neither holds more of it than a few pieces."""
    vps, mbp = pair
    before = max(resident_mib(node) for node in pair)
    path = big_file(tmp_path / "file", 1024)
    ref = await send(vps, "ada", "bob", path)
    grown = [resident_mib(vps) - before]
    for victim, size in ((mbp, 200 * MIB), (vps, 500 * MIB)):
        await until(has_some(mbp, ref.sha256, size), 120, "the transfer is under way")
        grown.append(resident_mib(victim) - before)
        victim.kill()
        victim.start()
        await victim.ready()
    await until(has(mbp, ref.sha256), 120, "the blob is whole")
    grown += [resident_mib(node) - before for node in pair]
    print("MiB above the idle gateways:", grown)
    assert await read(mbp, "bob") == ref.sha256
    assert max(grown) < 48
