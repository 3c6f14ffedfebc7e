"""Strangers at a gateway's peer listener: raw HTTP on raw sockets, and requests that can be bent.

Each newcomer comes from an address of its own (all of 127/8 is loopback on Linux), so that the limit on
requests from one address, which has its own test, does not decide here.
"""

import asyncio
import contextlib
import itertools
import json
import sys
from dataclasses import dataclass
from typing import Any

from auth.gateway_proofs import Pin
from auth.invites import InviteToken
from auth.joincodes import decode_join_code
from auth.joiner import Joiner, Trusted, pin_of
from auth.keys import SigningKey
from auth.limits import ENTROPY_BYTES
from auth.messages import CHALLENGE_PATH, EXCHANGE_PATH, PROOF_HEADER, RENEW_PATH
from gateway.clock import Clock
from gateway.links.peering import PATHS
from outbox.ids import NodeId
from tests.mesh.processes import Node

ANSWER_WITHIN_S = 60.0
"""Sixty strangers at once share one gateway and one busy machine; only a failure waits so long."""

SWITCHING = 101

_clock = Clock()
_addresses = itertools.count(2)


def fresh_address() -> str:
    number = next(_addresses)
    return f"127.0.{number // 250}.{number % 250 + 2}" if sys.platform == "linux" else "127.0.0.1"


@dataclass(frozen=True)
class Answer:
    """What came back, to the last byte; after 101 only the head was read."""

    status: int
    headers: dict[str, str]
    body: bytes
    rest: bytes = b""
    """What came after the body: nothing may."""

    @property
    def code(self) -> str:
        return str(json.loads(self.body)["error"]) if self.body else ""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(port: int, request: bytes, source: str = "127.0.0.1", *, host: str = "127.0.0.1") -> Answer:
    """Send these bytes and read until the answer is complete, and until the end when it is a refusal."""
    async with asyncio.timeout(ANSWER_WITHIN_S):
        reader, writer = await asyncio.open_connection(host, port, local_addr=(source, 0))
        try:
            named = f"Host: {host}:{port}\r\n".encode()  # known only here
            writer.write(request.replace(b"Host: 127.0.0.1\r\n", named, 1))
            head = await reader.readuntil(b"\r\n\r\n")
            status, headers = _head(head)
            if status == SWITCHING:
                return Answer(status, headers, b"")
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            return Answer(status, headers, body, await reader.read())
        finally:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.split(":", 1) for line in lines)
    return int(first.split(" ")[1]), {name.strip().lower(): value.strip() for name, value in pairs}


def post(
    path: str, body: bytes, *, media: str | None = "application/json", method: str = "POST", extra: str = ""
) -> bytes:
    """A request that says its length and wants the connection closed."""
    kind = f"Content-Type: {media}\r\n" if media is not None else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{kind}{extra}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def upgrade(path: str, headers: str, *, key: bool = True, version: int = 13) -> bytes:
    """A WebSocket upgrade (RFC 6455 section 4.1)."""
    lines = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{headers}"
    )
    if key:
        lines += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    return f"{lines}Sec-WebSocket-Version: {version}\r\n\r\n".encode()


class Newcomer:
    """One key under one name at one address."""

    def __init__(self, port: int, pin: Pin, name: str, key: SigningKey | None = None) -> None:
        self.port, self.pin, self.name = port, pin, name
        self.key = key or SigningKey(_clock.entropy(32))
        self.joiner = Joiner(NodeId(name), self.key)
        self.source = fresh_address()

    async def send(self, request: bytes) -> Answer:
        return await ask(self.port, request, self.source)

    async def challenge(self) -> Trusted:
        body, asked = self.joiner.challenge(self.pin, _clock.entropy(ENTROPY_BYTES))
        return self.joiner.accept(asked, (await self.send(post(CHALLENGE_PATH, body))).body)

    async def exchange_body(self, token: InviteToken, rooms: tuple[str, ...] = ("state",)) -> dict[str, Any]:
        body = self.joiner.exchange(await self.challenge(), token, _clock.wall_ms(), rooms)
        return dict(json.loads(body))

    async def send_exchange(self, body: dict[str, Any] | bytes) -> Answer:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.send(post(EXCHANGE_PATH, raw))

    async def exchange(self, token: InviteToken, rooms: tuple[str, ...] = ("state",)) -> Answer:
        return await self.send_exchange(await self.exchange_body(token, rooms))

    async def ticket(self, token: InviteToken) -> str:
        """An unused ticket for room ``state``."""
        answer = await self.exchange(token)
        assert answer.status == 200, answer
        return str(answer.json["wsTicket"])

    async def renew(self, rooms: tuple[str, ...]) -> Answer:
        body = self.joiner.renew(await self.challenge(), _clock.wall_ms(), rooms)
        return await self.send(post(RENEW_PATH, body))

    def headers(self, ticket: str, path: str = PATHS["state"], *, proof: str | None = None) -> str:
        made = self.joiner.upgrade_headers(NodeId("vps"), ticket, path, _clock.wall_ms())
        if proof is not None:
            made[PROOF_HEADER] = proof
        return "".join(f"{name}: {value}\r\n" for name, value in made.items())

    def socket_proof(self, ticket: str, path: str = PATHS["state"], gateway: str = "vps") -> str:
        return self.joiner.upgrade_headers(NodeId(gateway), ticket, path, _clock.wall_ms())[PROOF_HEADER]

    async def upgrade(self, ticket: str, room: str = "state") -> Answer:
        return await self.send(upgrade(PATHS[room], self.headers(ticket, PATHS[room])))

    async def join(self, token: InviteToken) -> None:
        answer = await self.upgrade(await self.ticket(token))
        assert answer.status == SWITCHING, answer


@dataclass(frozen=True)
class Door:
    """A gateway under attack."""

    node: Node
    port: int
    pin: Pin

    async def invite(self, name: str | None = None, **rules: Any) -> InviteToken:
        async with self.node.client() as gateway:
            code = decode_join_code((await gateway.invite(name, **rules)).join_code)
        assert pin_of(code) == self.pin
        return code.token

    async def invites(self) -> dict[str, str]:
        """The status of every invite."""
        async with self.node.client() as gateway:
            return {row.invite_id: row.status for row in await gateway.invites()}

    def newcomer(self, name: str, key: SigningKey | None = None) -> Newcomer:
        return Newcomer(self.port, self.pin, name, key)


async def door_of(node: Node) -> Door:
    """The door of a running gateway."""
    async with node.client() as gateway:
        pin = pin_of(decode_join_code((await gateway.invite()).join_code))
    return Door(node, node.port, pin)


def assert_refusal(answer: Answer, status: int, code: str) -> None:
    """Refused with this status and code, in a problem document that nobody caches, and not a byte more."""
    assert (answer.status, answer.code) == (status, code), answer
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store", answer.headers
    assert answer.json["status"] == status
    assert answer.rest == b"", "something follows the refusal"
    assert b"Traceback" not in answer.body
