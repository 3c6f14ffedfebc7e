"""Yjs clients as others publish them read the state room; without a ticket they get HTTP, not a socket."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pycrdt import Doc, Map, Provider
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from gateway.links.peering import PATHS
from tests.mesh.processes import Node, until
from tests.mesh.viewing import state_url, viewer_of

INTEROP = Path(__file__).parents[1] / "interop"
VIEWER_WITHIN_S = 60.0
MAPS = ("nodes", "agents")


def _node_js() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node (JavaScript) is not installed")
    if not (INTEROP / "node_modules").is_dir():
        pytest.skip("npm packages are missing: npm ci --prefix tests/interop")
    return found


async def run_viewer(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit status and last line of ``viewer.mjs``."""
    process = await asyncio.create_subprocess_exec(
        _node_js(), "viewer.mjs", *arguments, cwd=INTEROP, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(VIEWER_WITHIN_S):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, json.loads(output.splitlines()[-1])


async def test_npm_yjs_reads_nodes_and_agents(pair: tuple[Node, Node]) -> None:
    vps, _ = pair
    viewer, ticket = await viewer_of(vps)
    base = state_url(vps).removesuffix("/state")
    status, seen = await run_viewer(base, ticket, viewer.socket_proof(ticket), "2")
    assert (status, seen) == (0, {"nodes": ["mbp", "vps"], "agents": ["ada", "bob"], "strings": True})


async def test_npm_yjs_without_a_ticket_gets_401_before_101(vps: Node) -> None:
    base = state_url(vps).removesuffix("/state")
    assert await run_viewer(base, "", "", "1") == (3, {"status": 401})
    viewer, ticket = await viewer_of(vps)
    assert await run_viewer(base, ticket, viewer.socket_proof("other"), "1") == (3, {"status": 403})
    assert (await run_viewer(base, ticket, viewer.socket_proof(ticket), "1"))[0] == 0
    assert await run_viewer(base, ticket, viewer.socket_proof(ticket), "1") == (3, {"status": 409})


async def test_the_python_client_of_yjs_reads_nodes_and_agents(pair: tuple[Node, Node]) -> None:
    """``pycrdt.Provider``, which the package pycrdt-websocket had before."""
    vps, _ = pair
    viewer, ticket = await viewer_of(vps)
    document = Doc()
    maps = {name: document.get(name, type=Map) for name in MAPS}
    headers = viewer.joiner.upgrade_headers(vps.name, ticket, PATHS["state"], 0)

    async def look() -> bool:
        return [sorted(maps[name].keys()) for name in MAPS] == [["mbp", "vps"], ["ada", "bob"]]

    async with (
        connect(state_url(vps), additional_headers=headers, proxy=None) as socket,
        Provider(document, _Channel(socket)),
    ):
        await until(look, 60, "the Python viewer has both maps")
    with pytest.raises(InvalidStatus) as refused:
        await connect(state_url(vps), proxy=None)
    assert refused.value.response.status_code == 401


class _Channel:
    """What the provider wants of a socket: path, send, recv, and iteration."""

    path = "state"

    def __init__(self, socket: Any) -> None:
        self._socket = socket

    def __aiter__(self) -> "_Channel":
        return self

    async def __anext__(self) -> bytes:
        return await self.recv()

    async def send(self, message: bytes) -> None:
        await self._socket.send(message)

    async def recv(self) -> bytes:
        return bytes(await self._socket.recv())
