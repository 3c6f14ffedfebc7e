"""Blobs over the local API: streamed, gone on with, named by messages, read back, let go of."""

import asyncio
import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.blobs.errors import BlobWrong
from gateway.cli.exits import Exit
from gateway.engine.inputs import Prune
from gateway.errors import Denied
from outbox.blobref import OCTETS, BlobId, BlobRef
from outbox.errors import NotFound
from tests.gateway.local.test_cli import command

if TYPE_CHECKING:
    from tests.gateway.local.conftest import LocalNode

CONTENT = bytes(range(256)) * 3000
SHA = BlobId(sha256(CONTENT).hexdigest())
HERE = f"/v1/blobs/{SHA}"
TYPE = {"Content-Type": OCTETS}


async def put(node: "LocalNode", content: bytes = CONTENT, path: str = HERE, **headers: str) -> Any:
    async with node.http("jen") as http:
        return await http.put(path, content=content, headers=TYPE | headers)


async def get(node: "LocalNode", who: str | None = None, path: str = HERE, **headers: str) -> Any:
    async with node.operator() if who is None else node.http(who) as http:
        return await http.get(path, headers=headers)


async def head(node: "LocalNode") -> tuple[int, str | None]:
    async with node.http("jen") as http:
        answer = await http.head(HERE)
    return answer.status_code, answer.headers.get("upload-offset") or answer.headers.get("content-length")


def span(first: int, end: int) -> dict[str, str]:
    return {"Content-Range": f"bytes {first}-{end - 1}/{len(CONTENT)}"}


async def test_an_upload_is_here_under_its_hash(node: "LocalNode") -> None:
    answer = await put(node)
    assert (answer.status_code, answer.json()) == (201, {"sha256": SHA, "bytes": len(CONTENT)})
    assert node.home.blobs.joinpath(SHA).read_bytes() == CONTENT
    assert (await put(node)).status_code == 200
    assert await head(node) == (200, str(len(CONTENT)))
    read = await get(node)
    assert (read.status_code, read.content) == (200, CONTENT)
    assert read.headers["content-disposition"] == "attachment"
    part = await get(node, Range="bytes=700000-")
    assert (part.status_code, part.content) == (206, CONTENT[700_000:])
    assert part.headers["content-range"] == f"bytes 700000-{len(CONTENT) - 1}/{len(CONTENT)}"
    beyond = await get(node, Range=f"bytes={len(CONTENT)}-")
    assert (beyond.status_code, beyond.json()["code"]) == (416, "range_not_satisfiable")


async def test_what_has_no_name_yet_gets_one(node: "LocalNode") -> None:
    async def pieces() -> Any:
        for start in range(0, len(CONTENT), 100_000):
            yield CONTENT[start : start + 100_000]

    async with node.http("jen") as http:
        answer = await http.post("/v1/blobs", content=pieces(), headers=TYPE)
    assert (answer.status_code, answer.json()["sha256"]) == (201, SHA)
    assert [path.name for path in node.home.blobs.iterdir()] == [SHA]


async def test_an_upload_goes_on_where_it_was_cut_short(node: "LocalNode") -> None:
    assert await head(node) == (404, "0")
    first = await put(node, CONTENT[:300_000], **span(0, 300_000))
    assert (first.status_code, first.headers["upload-offset"]) == (202, "300000")
    assert await head(node) == (404, "300000")
    wrong = await put(node, CONTENT[500_000:], **span(500_000, len(CONTENT)))
    assert (wrong.status_code, wrong.json()["code"]) == (409, "conflict")
    assert "300000" in wrong.json()["hint"]
    last = await put(node, CONTENT[300_000:], **span(300_000, len(CONTENT)))
    assert last.status_code == 201
    assert (await get(node)).content == CONTENT


async def test_a_connection_that_breaks_leaves_what_came(node: "LocalNode") -> None:
    reader, writer = await asyncio.open_unix_connection(str(node.home.socket))
    lines = (
        f"PUT {HERE} HTTP/1.1",
        "Host: localhost",
        f"Content-Type: {OCTETS}",
        f"Content-Length: {len(CONTENT)}",
    )
    writer.write("\r\n".join((*lines, "", "")).encode() + CONTENT[:400_000])
    await writer.drain()
    async with asyncio.timeout(60):
        while node.blobs.disk.partial_size(SHA) == 0:
            await asyncio.sleep(0.01)
    writer.close()
    await writer.wait_closed()
    async with asyncio.timeout(60):
        while node.blobs.disk.partial_size(SHA) < 400_000:
            await asyncio.sleep(0.01)
    offset = node.blobs.disk.partial_size(SHA)
    async with asyncio.timeout(60):
        while (answer := await put(node, CONTENT[offset:], **span(offset, len(CONTENT)))).status_code == 409:
            await asyncio.sleep(0.01)
    assert answer.status_code == 201, answer.text
    assert reader is not None


async def test_what_does_not_hash_to_its_name_leaves_nothing(node: "LocalNode") -> None:
    answer = await put(node, CONTENT[:-1] + b"x")
    assert (answer.status_code, answer.json()["code"]) == (422, "blob_wrong")
    assert list(node.home.blobs.iterdir()) == []
    assert node.reader.blobs() == []


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (HERE, {"Content-Type": "text/plain"}, 415),
        (HERE, {"Content-Range": "bytes 0-1/*"}, 400),
        ("/v1/blobs/abc", {}, 400),
        ("/v1/blobs/..%2fkeys", {}, 404),
        (HERE + "?x=1", {}, 400),
    ],
)
async def test_what_is_no_upload_is_refused(node: "LocalNode", path: str, headers: Any, status: int) -> None:
    assert (await put(node, b"abc", path, **headers)).status_code == status
    assert not list(node.home.blobs.iterdir())


async def test_beyond_the_quota_nothing_is_kept(node: "LocalNode") -> None:
    node.blobs._bytes_max = len(CONTENT) - 1
    for answer in (await put(node), await _post(node)):
        assert (answer.status_code, answer.json()["code"]) == (507, "storage_full")
        assert answer.json()["hint"].startswith("raise blobs.bytes_max")
    assert list(node.home.blobs.iterdir()) == []
    assert await _full(node, 1)
    assert (await put(node, b"small", f"/v1/blobs/{sha256(b'small').hexdigest()}")).status_code == 201


async def test_what_was_cut_short_counts_and_gives_way(node: "LocalNode") -> None:
    """Uploads that nobody goes on with took any room for an hour, beside what files may take."""
    node.blobs._bytes_max = len(CONTENT) + 300_000

    def lying() -> int:
        return sum(path.stat().st_size for path in node.home.blobs.iterdir())

    for number in range(5):
        other = bytes([number]) * len(CONTENT)
        path = f"/v1/blobs/{sha256(other).hexdigest()}"
        assert (await put(node, other[:300_000], path, **span(0, 300_000))).status_code == 202
        assert lying() <= node.blobs._bytes_max
    assert (await put(node, CONTENT[:300_000], **span(0, 300_000))).status_code == 202
    assert await head(node) == (404, "300000"), "the newest goes on"
    assert (await put(node, CONTENT[300_000:], **span(300_000, len(CONTENT)))).status_code == 201
    small = b"small"
    assert (await put(node, small, f"/v1/blobs/{sha256(small).hexdigest()}")).status_code == 201
    assert lying() <= node.blobs._bytes_max


async def test_there_is_room_again_for_what_was_refused(node: "LocalNode") -> None:
    node.blobs._bytes_max = len(CONTENT) - 1
    await put(node)
    await put(node)
    assert await _full(node, 1), "told once"
    assert (await put(node, b"small", f"/v1/blobs/{sha256(b'small').hexdigest()}")).status_code == 201
    assert await _full(node, 1), "something smaller is no reason"
    node.blobs._bytes_max = len(CONTENT) + 5
    node.blobs.drop(BlobId("0" * 64))
    assert await _full(node, 0)
    assert (await put(node)).status_code == 201


async def _full(node: "LocalNode", count: int) -> bool:
    """Whether there are so many open incidents, after whatever was told is written."""
    await node.runtime.ask(Prune(node.runtime.req(), force=False))
    return [row.kind for row in node.reader.incidents(open_only=True)].count("blobs_full") == count


async def _post(node: "LocalNode") -> Any:
    async with node.http("jen") as http:
        return await http.post("/v1/blobs", content=CONTENT, headers=TYPE)


async def test_a_message_names_what_was_uploaded(node: "LocalNode") -> None:
    ref = {"sha256": SHA, "bytes": len(CONTENT), "contentType": "image/png"}
    body = {"to": "bob", "envelope": {"payloadRef": ref}}
    async with node.http("jen") as http:
        early = await http.post("/v1/enqueue", json=body)
        assert (early.status_code, early.json()["code"]) == (404, "not_found")
        await put(node)
        sent = await http.post("/v1/enqueue", json=body)
        assert sent.status_code == 202
        both = await http.post(
            "/v1/enqueue", json={"to": "bob", "envelope": {"payloadRef": ref, "payload": 1}}
        )
        neither = await http.post("/v1/enqueue", json={"to": "bob", "envelope": {}})
        assert (both.status_code, neither.status_code) == (400, 400)
    async with node.http("bob") as http:
        (row,) = (await http.get("/v1/inbox")).json()["items"]
    assert (row["payloadRef"], row["payload"], row["state"]) == (ref, None, "queued")
    assert (await get(node, "bob")).content == CONTENT
    assert (await get(node, "jen")).content == CONTENT


async def test_knowing_a_hash_is_not_enough(node: "LocalNode") -> None:
    await put(node)
    answer = await get(node, "bob")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_too_much_for_a_message_says_what_to_do(node: "LocalNode") -> None:
    async with node.http("jen") as http:
        answer = await http.post("/v1/enqueue", json={"to": "bob", "text": "x" * 300_000})
    assert answer.status_code == 413
    assert "--file" in answer.json()["hint"]


async def test_a_crash_between_file_and_row_costs_nothing(node: "LocalNode") -> None:
    node.home.blobs.joinpath(SHA).write_bytes(CONTENT)
    assert node.reader.blob(SHA) is None
    assert (await put(node)).status_code == 200
    assert node.reader.blob(SHA) is not None


async def test_a_file_without_a_row_that_is_wrong_is_no_blob(node: "LocalNode") -> None:
    node.home.blobs.joinpath(SHA).write_bytes(CONTENT[:-1])
    assert (await put(node)).status_code == 201
    assert node.home.blobs.joinpath(SHA).read_bytes() == CONTENT


# --- the Python client


async def test_a_client_sends_and_reads_files(node: "LocalNode", tmp_path: Path) -> None:
    path = tmp_path / "picture"
    path.write_bytes(CONTENT)
    done: list[int] = []
    async with node.client() as gateway:
        jen, bob = gateway.agent("jen"), gateway.agent("bob")
        ref = await jen.blobs.upload(path, content_type="image/png", progress=done.append)
        assert ref == BlobRef(SHA, len(CONTENT), "image/png")
        assert sum(done) == len(CONTENT)
        assert await jen.blobs.upload(path) == BlobRef(SHA, len(CONTENT))
        sent = await jen.send("bob", file=ref)
        async with bob.turns() as turns:
            turn = await anext(aiter(turns))
            assert (turn.event_id, turn.blob) == (sent.event_id, ref)
            assert b"".join([piece async for piece in turn.open_blob()]) == CONTENT
            assert b"".join([piece async for piece in turn.open_blob(700_000)]) == CONTENT[700_000:]
            await turn.ok()
        assert (await gateway.list_blobs()).bytes == len(CONTENT)


async def test_a_client_goes_on_with_an_upload(node: "LocalNode", tmp_path: Path) -> None:
    path = tmp_path / "picture"
    path.write_bytes(CONTENT)
    await put(node, CONTENT[:300_000], **span(0, 300_000))
    done: list[int] = []
    async with node.client() as gateway:
        await gateway.blobs.upload(path, progress=done.append)
        assert done[0] == 300_000
        assert sum(done) == len(CONTENT)
        with path.open("rb") as file:
            assert (await gateway.blobs.pour(file)).sha256 == SHA


async def test_a_client_notices_what_is_not_what_it_should_be(node: "LocalNode") -> None:
    await put(node)
    altered = CONTENT[:-1] + b"x"
    node.home.blobs.joinpath(SHA).write_bytes(altered)
    async with node.client() as gateway:
        with pytest.raises(BlobWrong):
            async for _ in gateway.blobs.read(BlobRef(SHA, len(CONTENT))):
                pass
        with pytest.raises(NotFound):
            await gateway.blobs.ref(BlobId("0" * 64))
        with pytest.raises(Denied):
            async for _ in gateway.blobs.read(BlobRef(BlobId("0" * 64), 1)):
                pass


# --- the command line


async def test_a_file_goes_by_command_line(node: "LocalNode", tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(CONTENT)
    code, out, err = await command(node, "send", "bob", "--file", str(path), "--as", "jen", "--json")
    assert code == Exit.OK, err
    assert json.loads(out)["to"]["agent"] == "bob"
    _, out, _ = await command(node, "inbox", "--as", "bob", "--json")
    assert json.loads(out)[0]["payloadRef"] == {
        "sha256": SHA,
        "bytes": len(CONTENT),
        "contentType": "text/plain",
    }
    _, shown, _ = await command(node, "inbox", "--as", "bob")
    assert SHA[:8] in shown
    target = tmp_path / "copy"
    assert (await command(node, "blob", "get", SHA, "-o", str(target), "--as", "bob"))[0] == Exit.OK
    assert target.read_bytes() == CONTENT
    assert (await command(node, "blob", "get", "0" * 64, "-o", str(target)))[0] == Exit.NOTHING
    code, out, _ = await command(node, "blob", "list", "--json")
    assert json.loads(out)["blobs"][0]["sha256"] == SHA
    code, out, _ = await command(node, "blob", "put", str(path))
    assert (code, out.strip()) == (Exit.OK, SHA)


async def test_verify_names_what_is_damaged(node: "LocalNode") -> None:
    await put(node)
    assert (await command(node, "blob", "verify", "--json"))[1:] == (
        json.dumps({"blobs": 1, "bytes": len(CONTENT)}, indent=2) + "\n",
        "",
    )
    node.home.blobs.joinpath(SHA).write_bytes(b"other")
    code, _, err = await command(node, "blob", "verify")
    assert code == Exit.FAILED
    assert SHA in err
