"""Who may speak to the local listener: names, origins, tokens, sizes, on real sockets."""

import asyncio
import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from websockets.asyncio.client import connect, unix_connect
from websockets.exceptions import InvalidStatus

if TYPE_CHECKING:
    from tests.gateway.local.conftest import LocalNode

SEND = {"to": "bob", "text": "hi"}
SOCKETS = ("/v1/subscribe?stream=agents/jen/inbox", "/v1/watch")


async def raw_request(node: "LocalNode", request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    writer.write(request)
    await writer.drain()
    async with asyncio.timeout(60):
        answer = await reader.read(4096)
    writer.close()
    await writer.wait_closed()
    return answer


async def test_only_the_listeners_own_names_are_served(node: "LocalNode") -> None:
    foreign = [
        f"evil.example:{node.port}",
        f"127.evil.com:{node.port}",
        f"localhost.evil.com:{node.port}",
        f"0.0.0.0:{node.port}",
        "2130706433",
        f"[::ffff:127.0.0.1]:{node.port}",
        f"127.0.0.1:{node.port + 1}",
        "127.0.0.1",
    ]
    async with node.http("jen") as http:
        for host in foreign:
            answer = await http.get("/v1/status", headers={"Host": host})
            assert (answer.status_code, answer.json()["code"]) == (421, "misdirected"), host
        for host in (f"127.0.0.1:{node.port}", f"LOCALHOST:{node.port}"):
            assert (await http.get("/v1/status", headers={"Host": host})).status_code == 200, host


async def test_no_host_or_two_are_400(node: "LocalNode") -> None:
    token = f"Authorization: Bearer {node.token('jen')}\r\n\r\n".encode()
    host = f"Host: 127.0.0.1:{node.port}\r\n".encode()
    for hosts in (b"", host + host, host + b"Host: evil.example\r\n"):
        answer = await raw_request(node, b"GET /v1/status HTTP/1.1\r\n" + hosts + token)
        assert answer.startswith(b"HTTP/1.1 400"), answer


async def test_pages_of_other_sites_are_refused_without_effect(node: "LocalNode") -> None:
    origins = [
        "http://evil.example",
        "null",
        f"http://127.0.0.1:{node.port + 1}",
        "http://localhost.evil",
        "",
    ]
    async with node.http("jen") as http:
        for origin in origins:
            answer = await http.post("/v1/enqueue", json=SEND, headers={"Origin": origin})
            assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin"), origin
        for site in ("cross-site", "same-site"):
            answer = await http.post("/v1/enqueue", json=SEND, headers={"Sec-Fetch-Site": site})
            assert answer.status_code == 403
        preflight = await http.options("/v1/enqueue", headers={"Origin": "http://evil.example"})
        assert preflight.status_code == 403
        assert not [name for name in preflight.headers if name.startswith("access-control")]
        own = await http.post("/v1/enqueue", json=SEND, headers={"Origin": node.url})
        assert own.status_code == 202
    assert sum(node.reader.count_deliveries().values()) == 1


async def test_a_form_or_plain_text_is_no_request(node: "LocalNode") -> None:
    async with node.http("jen") as http:
        for media in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""):
            answer = await http.post("/v1/enqueue", content=json.dumps(SEND), headers={"Content-Type": media})
            assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type"), media
            assert "Content-Type: application/json" in answer.json()["hint"]
    assert node.reader.count_deliveries() == {}


async def test_nobody_gets_the_same_401_whatever_they_show(node: "LocalNode") -> None:
    token = node.token("jen")
    shown = [
        None,
        "Bearer",
        "Bearer gwt_",
        f"Bearer {token}=",
        f"Bearer {token[:-1]}",
        f"Basic {token}",
        f"Bearer {token} {token}",
    ]
    answers = []
    for header in shown:
        headers = {"Authorization": header} if header is not None else {}
        spoofed = {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1"}
        async with node.http(None, **headers, **spoofed) as http:
            answers.append(await http.get("/v1/status"))
    assert {answer.status_code for answer in answers} == {401}
    assert {answer.content for answer in answers} == {answers[0].content}
    assert answers[0].headers["www-authenticate"] == "Bearer"


async def test_a_token_in_the_query_is_refused(node: "LocalNode") -> None:
    async with node.http("jen") as http:
        answer = await http.get("/v1/status", params={"token": node.token("jen")})
        twice = await http.get("/v1/inbox?limit=1&limit=2")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert twice.status_code == 400


async def test_sockets_are_refused_before_they_open(node: "LocalNode") -> None:
    bearer = {"Authorization": f"Bearer {node.token('jen')}"}
    cases = [
        (bearer | {"Origin": "http://evil.example"}, 403),
        ({}, 401),
        ({"Authorization": f"Bearer {node.token('bob')}"}, 403),
    ]
    for path in SOCKETS:
        for headers, status in cases[: 3 if "subscribe" in path else 2]:
            with pytest.raises(InvalidStatus) as refused:
                await connect(f"ws://127.0.0.1:{node.port}{path}", additional_headers=headers, proxy=None)
            assert refused.value.response.status_code == status, (path, headers)


async def test_crooked_stream_names_reach_nobodys_inbox(node: "LocalNode") -> None:
    bearer = {"Authorization": f"Bearer {node.token('jen')}"}
    crooked = [
        "agents/jen/inbox/../../bob/inbox",
        "agents%2Fjen/outbox",
        "agents/jen/inbox%00",
        "agents/Jen/inbox",
        "jen",
        "jen@vps",
        "",
    ]
    for stream in crooked:
        with pytest.raises(InvalidStatus) as refused:
            await connect(
                f"ws://127.0.0.1:{node.port}/v1/subscribe?stream={stream}",
                additional_headers=bearer,
                proxy=None,
            )
        assert refused.value.response.status_code in {400, 403, 404}, stream


async def test_a_body_above_the_limit_is_cut_off_while_it_streams(node: "LocalNode") -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(10_000):
            sent += 65_536
            yield b" " * 65_536

    async with node.http("jen") as http:
        try:
            answer = await http.post(
                "/v1/enqueue", content=endless(), headers={"Content-Type": "application/json"}
            )
        except httpx.TransportError:
            pass  # the server closed while we were still writing
        else:
            assert answer.status_code == 413
        declared = await http.post("/v1/enqueue", content=b" " * 400_000)
        assert (declared.status_code, declared.json()["code"]) == (413, "too_large")
    assert sent < 100 * 65_536


async def test_the_unix_socket_is_the_owners_and_a_token_narrows_it(node: "LocalNode") -> None:
    socket = node.home.socket
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    transport = httpx.AsyncHTTPTransport(uds=str(socket))
    async with httpx.AsyncClient(base_url="http://localhost", transport=transport) as http:
        assert (await http.get("/v1/outbox")).status_code == 200
        agent = {"Authorization": f"Bearer {node.token('jen')}"}
        assert (await http.get("/v1/outbox", headers=agent)).status_code == 403
        assert (await http.get("/v1/status", headers={"Authorization": "Bearer x"})).status_code == 401
        assert (await http.get("/v1/status", headers={"Host": "evil.example"})).status_code == 421
    with pytest.raises(InvalidStatus) as refused:
        await unix_connect(str(socket), "ws://localhost/v1/watch?agent=nobody")
    assert refused.value.response.status_code == 404


async def test_an_agent_is_no_operator(node: "LocalNode") -> None:
    async with node.http("jen") as http:
        answers = [
            await http.post("/v1/agents", json={"name": "eve"}),
            await http.delete("/v1/agents/bob"),
            await http.post("/v1/invites", json={}),
            await http.get("/v1/invites"),
            await http.delete("/v1/invites/inv_aaaaaaaaaaaaaaaa"),
            await http.get("/v1/incidents"),
            await http.get("/v1/outbox"),
            await http.get("/v1/inbox", params={"agent": "bob"}),
        ]
    assert {answer.status_code for answer in answers} == {403}


async def test_health_needs_no_token_and_the_rest_of_the_paths_do_not_exist(node: "LocalNode") -> None:
    async with node.http() as http:
        assert (await http.get("/livez")).status_code == 200
        assert (await http.get("/readyz")).status_code == 200
        node.room_loaded = False
        assert (await http.get("/readyz")).status_code == 503
    async with node.http("jen") as http:
        for path in ("/", "/v1", "/v1/status/", "/v1/../etc/passwd", "/v1/trace/evt_1/x"):
            answer = await http.get(path)
            assert (answer.status_code, answer.json()["code"]) == (404, "no_route"), path
            assert "LOCAL_API.md" in answer.json()["hint"]
        wrong = await http.get("/v1/enqueue")
        assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")


def test_token_files_are_the_owners(stopped: "LocalNode", tmp_path: Path) -> None:
    assert stat.S_IMODE(stopped.home.agents.stat().st_mode) == 0o700
