"""Namespaces between real sockets: each way is blocked by itself, and nothing is left behind."""

import asyncio
import os
import subprocess
import sys

import pytest

from gateway.errors import ConfigError
from gateway.harness.real.equipment import check_network
from gateway.harness.real.namespaces import NamespaceNetwork
from gateway.harness.real.net import Net
from outbox.ids import NodeId

N1, N2, N3 = (NodeId(f"n{number}") for number in (1, 2, 3))
WITHIN_S = 60.0

try:
    check_network(Net.NS)
except ConfigError as error:
    pytestmark = pytest.mark.skip(str(error))

REPEAT = """
import asyncio, sys
async def echo(reader, writer):
    while data := await reader.read(100):
        writer.write(data)
async def main():
    server = await asyncio.start_server(echo, sys.argv[1], 7420)
    print("ready", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""

TELL = """
import socket, sys
line, heard = socket.create_connection((sys.argv[1], 7420), timeout=60), ""
for word in sys.stdin:
    line.settimeout(0.5 if word == "lost\\n" else 60)
    try:
        line.sendall(word.encode())
        while not heard.endswith(word):
            data = line.recv(100).decode()
            heard = heard + data if data else word
        print(heard.strip().replace("\\n", " "), flush=True)
        heard = ""
    except OSError as error:
        print(type(error).__name__, flush=True)
"""
"""Says each word that it reads, and what came back until then; one is not waited for."""


class Program:
    """Python code in the namespace of a node."""

    def __init__(self, network: NamespaceNetwork, node: NodeId, code: str, *arguments: str) -> None:
        self._command = (*network.prefix(node), sys.executable, "-c", code, *arguments)
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> "Program":
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            return (await self._process.stdout.readline()).decode().strip()

    async def say(self, word: str) -> str:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n".encode())
        return await self.line()


def host(network: NamespaceNetwork, node: NodeId) -> str:
    return str(network.settings(node)["listen.host"])


def ours() -> list[str]:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if line.startswith(f"gw{os.getpid()}-")]


async def test_ways_are_blocked_one_by_one_and_connections_outlive_it() -> None:
    network = await NamespaceNetwork.open([N1, N2, N3])
    try:
        there = host(network, N2)
        async with Program(network, N2, REPEAT, there) as server:
            assert await server.line() == "ready"
            async with (
                Program(network, N1, TELL, there) as one,
                Program(network, N3, TELL, there) as other,
            ):
                assert (await one.say("hello"), await other.say("hello")) == ("hello", "hello")
                for way in ((N1, N2), (N2, N1)):
                    await network.block(*way)
                    assert await one.say("lost") == "TimeoutError"
                    assert await other.say("there?") == "there?", "others are not concerned"
                    await network.unblock(*way)
                    assert await one.say("found") == "lost found", "TCP repeats what did not arrive"
                for _ in range(2):
                    await network.block(N1, N2)
                await network.unblock(N1, N2)
                assert await one.say("lost") == "TimeoutError", "it was blocked twice"
                await network.heal()
                assert await one.say("found") == "lost found"
                await network.snap(N1, N2)
                assert await one.say("hello") in {"ConnectionAbortedError", "ConnectionResetError"}
                assert await other.say("there?") == "there?"
                assert len(ours()) == 4
    finally:
        await network.close()
    assert ours() == []
