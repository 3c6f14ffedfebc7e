"""The peer listener against everybody who should not get in, byte by byte over real sockets.

The gateway runs in the test's own process on a clock that the test moves, so that expiry needs no waiting;
races go against a process of its own (``test_races``). What each step must refuse, and in which order, is in
``docs/PROTOCOL.md``. After every refusal the rightful key still gets in with the same invite or ticket.
"""

import asyncio
import json
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from auth.invites import InviteToken, read_invite_token
from auth.keys import SigningKey
from auth.messages import CHALLENGE_PATH, EXCHANGE_PATH, RENEW_PATH
from gateway.clock import Clock
from gateway.fleet.ports import free_ports
from gateway.links.peering import PATHS
from outbox import base64url
from outbox.ids import NodeId
from tests.auth.test_curve import LOW_ORDER
from tests.mesh.knocking import (
    SWITCHING,
    Answer,
    Door,
    Newcomer,
    ask,
    assert_refusal,
    door_of,
    post,
    upgrade,
)
from tests.mesh.processes import Node
from tests.mesh.serving import serving

HOUR_MS = 3_600_000
TICKET_MS = 45_000
STATE = PATHS["state"]


class MovedClock(Clock):
    """The machine's clock, put forward, or stopped."""

    def __init__(self) -> None:
        self.ahead_ms = 0
        self._stands_at_ms: tuple[int, int] | None = None

    def wall_ms(self) -> int:
        return self._stands_at_ms[0] if self._stands_at_ms else super().wall_ms() + self.ahead_ms

    def mono_ms(self) -> int:
        return self._stands_at_ms[1] if self._stands_at_ms else super().mono_ms()

    def stop(self) -> None:
        """Both: a wall clock that stands is followed at half the speed of the other one."""
        self._stands_at_ms = self.wall_ms(), self.mono_ms()


@dataclass(frozen=True)
class Bench:
    """The door, its clock, and the gateway behind it."""

    door: Door
    clock: MovedClock
    agent_port: int


@pytest.fixture
async def bench(mesh_dir: Path) -> AsyncIterator[Bench]:
    (agent_port,) = free_ports(1)
    node = Node("vps", mesh_dir, **{"local.port": agent_port})
    node.found()
    clock = MovedClock()
    async with serving(node, clock):
        yield Bench(await door_of(node), clock, agent_port)


async def assert_usable(door: Door, token: InviteToken, mbp: Newcomer) -> None:
    """The rightful node gets in, once."""
    ticket = await mbp.ticket(token)
    assert (await mbp.upgrade(ticket)).status == SWITCHING
    assert_refusal(await mbp.upgrade(ticket), 409, "ticket_already_used")
    assert (await door.invites())[token.id] == "used"


# --- A: shapes


def _twice(body: dict[str, Any]) -> bytes:
    text = json.dumps(body)
    return text.replace("{", f'{{"inviteToken": "{body["inviteToken"]}", ', 1).encode()


def _with(name: str, raw: str) -> Callable[[dict[str, Any]], bytes]:
    def bend(body: dict[str, Any]) -> bytes:
        kept = {key: value for key, value in body.items() if key != name}
        return json.dumps(kept).replace("{", f'{{"{name}": {raw}, ', 1).encode()

    return bend


BAD_NODES = ["node-1\n", "mbp ", "m\0p", "a" * 64, "NODE", "..", "a/b", "%2e", "", 7, ["mbp"], None, True]

SHAPES: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "A1 duplicate key": _twice,
    "A2 array": lambda _: b"[]",
    "A2 null": lambda _: b"null",
    "A2 text": lambda _: b'"x"',
    "A2 empty": lambda _: b"",
    "A2 no JSON": lambda _: b"inviteToken=x&nodeId=mbp",
    "A4 NaN": _with("requestedRooms", "NaN"),
    "A4 infinite": _with("requestedRooms", "1e400"),
    "A4 long": _with("requestedRooms", "1" * 5000),
    "A6 UTF-16": lambda body: json.dumps(body).encode("utf-16"),
    "A6 BOM": lambda body: b"\xef\xbb\xbf" + json.dumps(body).encode(),
    "A15 extra": lambda body: json.dumps({**body, "admin": True}).encode(),
    **{f"A9-A11 {node!r:.12}": _with("nodeId", json.dumps(node)) for node in BAD_NODES},
}


async def test_bodies_of_another_shape_are_refused(bench: Bench) -> None:
    door = bench.door
    token, mbp = await door.invite(), door.newcomer("mbp")
    body = await mbp.exchange_body(token)
    for name, bend in SHAPES.items():
        answer = await mbp.send_exchange(bend(body))
        assert (answer.status, answer.code) == (400, "invalid_request"), name
        assert_refusal(answer, 400, "invalid_request")
    for media in ("text/plain", "application/x-www-form-urlencoded", None):
        answer = await mbp.send(post(EXCHANGE_PATH, json.dumps(body).encode(), media=media))
        assert_refusal(answer, 415, "unsupported_media_type")
    await assert_usable(door, token, mbp)


@pytest.mark.parametrize("path", [CHALLENGE_PATH, EXCHANGE_PATH, RENEW_PATH])
async def test_long_bodies_are_not_read_to_their_end(bench: Bench, path: str) -> None:
    door = bench.door
    for size in (16_385, 20_000):
        assert_refusal(await ask(door.port, post(path, b" " * size)), 413, "too_large")
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    # 50 MB are promised and never sent: only who answers early can answer at all.
    promised = f"{head}Content-Length: 50000000\r\n\r\n".encode() + b" " * 20_000
    answer = await ask(door.port, promised)
    assert_refusal(answer, 413, "too_large")
    assert answer.headers["connection"] == "close"
    chunks = b"1000\r\n" + b" " * 4096 + b"\r\n"
    endless = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks * 5
    assert_refusal(await ask(door.port, endless), 413, "too_large")


async def test_other_methods_and_paths_are_not_served(bench: Bench) -> None:
    door = bench.door
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        answer = await ask(door.port, post(EXCHANGE_PATH, b"{}", method=method))
        assert_refusal(answer, 405, "method_not_allowed")
        assert "access-control-allow-origin" not in answer.headers
    for path in (f"{EXCHANGE_PATH}/", f"/{EXCHANGE_PATH}", "/", "/docs", "/openapi.json", "/v1/status"):
        answer = await ask(door.port, post(path, b"{}"))
        assert_refusal(answer, 404, "no_route")
        assert "Unix socket" in answer.json["hint"], (
            "who took this port for that of agents learns the right one"
        )


async def test_two_host_headers_are_one_too_many(bench: Bench) -> None:
    door = bench.door
    token, mbp = await door.invite(), door.newcomer("mbp")
    body = json.dumps(await mbp.exchange_body(token)).encode()
    answer = await mbp.send(post(EXCHANGE_PATH, body, extra="Host: evil.example\r\n"))
    assert_refusal(answer, 400, "invalid_request")
    ticket = await mbp.ticket(token)
    answer = await mbp.send(upgrade(STATE, f"Host: evil.example\r\n{mbp.headers(ticket)}"))
    assert_refusal(answer, 400, "invalid_request")
    assert (await mbp.upgrade(ticket)).status == SWITCHING


@pytest.mark.parametrize(
    "name", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}"]
)
async def test_a_gateway_answers_to_its_own_names_only(bench: Bench, name: str) -> None:
    door = bench.door
    token, mbp = await door.invite(), door.newcomer("mbp")
    named = f"Host: {name.format(port=door.port)} \r\n".encode()
    body = json.dumps(await mbp.exchange_body(token)).encode()
    request = post(EXCHANGE_PATH, body).replace(b"Host: 127.0.0.1\r\n", named)
    assert_refusal(await mbp.send(request), 421, "misdirected")
    ticket = await mbp.ticket(token)
    request = upgrade(STATE, mbp.headers(ticket)).replace(b"Host: 127.0.0.1\r\n", named)
    assert_refusal(await mbp.send(request), 421, "misdirected")
    assert (await mbp.upgrade(ticket)).status == SWITCHING


async def test_web_pages_get_nothing(bench: Bench) -> None:
    door = bench.door
    token, mbp = await door.invite(), door.newcomer("mbp")
    body = json.dumps(await mbp.exchange_body(token)).encode()
    for extra in (
        "Origin: https://evil.example\r\n",
        "Origin: null\r\n",
        f"Origin: http://127.0.0.1:{door.port}\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
    ):
        answer = await mbp.send(post(EXCHANGE_PATH, body, extra=extra))
        assert_refusal(answer, 403, "foreign_origin")
        assert not any(name.startswith("access-control") for name in answer.headers)
    await assert_usable(door, token, mbp)


# --- B: token, node, proof


def _other_last(text: str) -> str:
    return text[:-1] + ("A" if text[-1] != "A" else "E")


async def test_wrong_tokens_all_look_alike(bench: Bench) -> None:
    door = bench.door
    token, second, mbp = await door.invite(), await door.invite(), door.newcomer("mbp")
    name, _, secret = token.text.partition(".")
    wrong = {
        "B1": f"inv_{'a' * 16}.{secret}",
        "B2": _other_last(token.text),
        "B4 case": token.text.swapcase(),
        "B4 crossed": f"{name}.{second.text.partition('.')[2]}",
        "no token": "x",
    }
    bodies = set()
    for text in wrong.values():
        body = {**await mbp.exchange_body(token), "inviteToken": text}
        answer = await mbp.send_exchange(body)
        assert_refusal(answer, 401, "invalid_token")
        bodies.add(answer.body)
    assert len(bodies) == 1, "an oracle"
    await assert_usable(door, token, mbp)


async def test_names_and_keys_of_others(bench: Bench) -> None:
    door = bench.door
    owner = door.newcomer("lab")
    await owner.join(await door.invite())
    token = await door.invite()
    mbp = door.newcomer("mbp")
    # B5: the name of a member under another key; of the gateway itself
    assert_refusal(await door.newcomer("lab").exchange(token), 403, "node_mismatch")
    assert_refusal(await door.newcomer("vps").exchange(token), 403, "node_mismatch")
    # B10, B11, B15
    body = await mbp.exchange_body(token)
    lab_body = await owner.exchange_body(token)
    for bent in (
        {name: value for name, value in body.items() if name != "nodeProof"},
        {**body, "nodeProof": lab_body["nodeProof"]},
        {**body, "requestedRooms": ["state", "pipe"]},
        {**body, "nonce": lab_body["nonce"]},
        {**body, "nodeProof": mbp.socket_proof("ticket")},
    ):
        assert_refusal(await mbp.send_exchange(bent), 403, "node_mismatch")
    assert (await owner.renew(("pipe",))).status == 200, "the member's record is unchanged"
    await assert_usable(door, token, mbp)


async def test_an_invite_for_one_node_or_key_is_for_nobody_else(bench: Bench) -> None:
    door, key = bench.door, SigningKey(b"k" * 32)
    token = await door.invite("mbp", key_thumbprint=key.public.jkt)
    assert_refusal(await door.newcomer("lab", key).exchange(token), 403, "node_mismatch")
    assert_refusal(await door.newcomer("mbp").exchange(token), 403, "node_mismatch")
    await assert_usable(door, token, door.newcomer("mbp", key))


async def test_keys_under_which_anything_verifies_never_enter(bench: Bench) -> None:
    """B7: R is the identity and s is zero; a plain verifier accepts that for every message."""
    door = bench.door
    token, mbp = await door.invite(), door.newcomer("mbp")
    for raw in LOW_ORDER:
        body = await mbp.exchange_body(token)
        claims = json.loads(base64url.decode(body["nodeProof"].split(".")[1]))
        jwk = {"crv": "Ed25519", "kty": "OKP", "x": base64url.encode(raw)}
        header = {"alg": "EdDSA", "typ": "ansible-node-proof+jwt", "jwk": jwk}
        parts = (json.dumps(header).encode(), json.dumps(claims).encode(), b"\x01" + bytes(63))
        forged = ".".join(base64url.encode(part) for part in parts)
        answer = await mbp.send_exchange({**body, "nodeProof": forged})
        assert_refusal(answer, 403, "node_mismatch")
    await assert_usable(door, token, mbp)


def _claim(token: str, name: str) -> str:
    return str(json.loads(base64url.decode(token.split(".")[1]))[name])


# --- C: status and order


async def test_expired_invites_tell_only_who_knows_the_secret(bench: Bench) -> None:
    door = bench.door
    token, mbp = await door.invite(ttl_s=60), door.newcomer("mbp")
    body = await mbp.exchange_body(token)
    bench.clock.ahead_ms = 61_000
    assert_refusal(await mbp.send_exchange(body), 401, "expired_token")  # C1
    body["inviteToken"] = _other_last(token.text)
    assert_refusal(await mbp.send_exchange(body), 401, "invalid_token")  # C2


async def test_an_invite_is_spent_by_its_use(bench: Bench) -> None:
    door = bench.door
    token, mbp = await door.invite(), door.newcomer("mbp")
    await assert_usable(door, token, mbp)
    assert_refusal(await mbp.exchange(token), 409, "token_already_used")  # C3
    assert_refusal(await door.newcomer("lab").exchange(token), 409, "token_already_used")
    wrong = {**await mbp.exchange_body(token), "inviteToken": _other_last(token.text)}
    assert_refusal(await mbp.send_exchange(wrong), 401, "invalid_token")


async def test_a_second_key_makes_the_invite_worthless_for_both(bench: Bench) -> None:
    door = bench.door
    token, mbp, thief = await door.invite(), door.newcomer("mbp"), door.newcomer("mbp")
    ticket = await mbp.ticket(token)
    assert_refusal(await thief.exchange(token), 409, "token_already_used")  # C5
    assert_refusal(await mbp.upgrade(ticket), 401, "invalid_ticket")
    assert_refusal(await mbp.exchange(token), 409, "token_already_used")  # C6
    assert (await door.invites())[token.id] == "contested"
    await assert_usable(door, await door.invite(), mbp)


async def test_asking_again_gives_a_new_ticket_and_nothing_more(bench: Bench) -> None:
    door = bench.door
    token, mbp = await door.invite(), door.newcomer("mbp")
    first = await mbp.ticket(token)
    answer = await mbp.exchange(token, ("state", "pipe"))  # C7
    assert_refusal(answer, 409, "token_already_used")
    second = await mbp.ticket(token)  # C8
    assert_refusal(await mbp.upgrade(first), 401, "invalid_ticket")  # E14
    assert (await mbp.upgrade(second)).status == SWITCHING


async def test_rooms_beyond_the_invite_are_refused_whole(bench: Bench) -> None:
    door = bench.door
    token, mbp = await door.invite(), door.newcomer("mbp")
    for rooms in (("state", "secrets"), ("secrets",)):
        assert_refusal(await mbp.exchange(token, rooms), 403, "room_forbidden")  # C10
    await assert_usable(door, token, mbp)


async def test_a_revoked_invite_is_as_good_as_none(bench: Bench) -> None:
    door = bench.door
    token, mbp = await door.invite(), door.newcomer("mbp")
    ticket = await mbp.ticket(token)
    async with door.node.client() as gateway:
        await gateway.revoke_invite(token.id)
    assert_refusal(await mbp.upgrade(ticket), 401, "invalid_ticket")
    assert_refusal(await mbp.exchange(token), 401, "invalid_token")  # B16


# --- D: nonces


async def test_a_nonce_works_once(bench: Bench) -> None:
    door = bench.door
    token, mbp = await door.invite(), door.newcomer("mbp")
    trusted = await mbp.challenge()
    body = mbp.joiner.exchange(trusted, token, 1)
    assert (await mbp.send_exchange(body)).status == 200
    assert_refusal(await mbp.send_exchange(body), 409, "replay_detected")  # D1
    again = mbp.joiner.exchange(trusted, token, 2)
    assert_refusal(await mbp.send_exchange(again), 409, "replay_detected")  # D2
    await assert_usable(door, token, mbp)


async def test_nonces_of_nobody_are_refused(bench: Bench) -> None:
    door = bench.door
    token, mbp, lab = await door.invite(), door.newcomer("mbp"), door.newcomer("lab")
    trusted = await mbp.challenge()
    foreign = (await lab.challenge()).nonce
    made_up = urlsafe_b64encode(b"n" * 40).rstrip(b"=").decode()
    for nonce in (made_up, foreign, trusted.nonce[:-2], f"{trusted.nonce}==", f"{trusted.nonce}AAAA"):
        bent = type(trusted)(trusted.gateway, nonce)
        body = mbp.joiner.exchange(bent, token, 1)
        assert_refusal(await mbp.send_exchange(body), 409, "replay_detected")  # D3
    late = mbp.joiner.exchange(trusted, token, 1)
    bench.clock.ahead_ms = 121_000
    assert_refusal(await mbp.send_exchange(late), 409, "replay_detected")  # D4
    await assert_usable(door, token, mbp)


async def test_a_clock_that_was_set_back_locks_nobody_out(bench: Bench) -> None:
    """A real run with clock faults: nonces were dated by one clock and judged by another, for minutes."""
    door = bench.door
    bench.clock.ahead_ms = 400_000
    await assert_usable(door, await door.invite(), door.newcomer("mbp"))
    bench.clock.ahead_ms = 0
    await assert_usable(door, await door.invite(), door.newcomer("lab"))


# --- E: the upgrade

Bend = Callable[[Newcomer, Newcomer, str], str]
"""(the rightful node, another one, its ticket) -> the headers of an upgrade."""

UPGRADES: dict[str, tuple[Bend, int, str]] = {
    "E1 nothing": (lambda *_: "", 401, "invalid_ticket"),
    "E1 bearer": (lambda *a: f"Authorization: Bearer {a[2]}\r\n", 401, "invalid_ticket"),
    "E1 two": (lambda *a: f"Authorization: AnsibleTicket {a[2]}\r\n" * 2, 401, "invalid_ticket"),
    "E1 empty": (lambda *_: "Authorization: AnsibleTicket \r\n", 401, "invalid_ticket"),
    "E1 bare": (lambda *_: "Authorization:\r\n", 401, "invalid_ticket"),
    "E1 cut": (lambda m, _, t: m.headers(t[:-4]), 401, "invalid_ticket"),
    "E6 no proof": (lambda *a: f"Authorization: AnsibleTicket {a[2]}\r\n", 403, "node_mismatch"),
    "E6 other key": (
        lambda m, lab, t: m.headers(t, proof=Newcomer(lab.port, lab.pin, "mbp").socket_proof(t)),
        403,
        "node_mismatch",
    ),
    "E6 other node": (lambda m, lab, t: m.headers(t, proof=lab.socket_proof(t)), 403, "node_mismatch"),
    "E6 other ticket": (lambda m, _, t: m.headers(t, proof=m.socket_proof("x")), 403, "node_mismatch"),
    "E6 other path": (
        lambda m, _, t: m.headers(t, proof=m.socket_proof(t, PATHS["pipe"])),
        403,
        "node_mismatch",
    ),
    "E6 other gateway": (
        lambda m, _, t: m.headers(t, proof=m.socket_proof(t, gateway="mbp")),
        403,
        "node_mismatch",
    ),
    "E6 two proofs": (
        lambda m, _, t: m.headers(t) + f"Ansible-Node-Proof: {m.socket_proof(t)}\r\n",
        403,
        "node_mismatch",
    ),
    "E13 evil": (lambda m, _, t: m.headers(t) + "Origin: https://evil.example\r\n", 403, "foreign_origin"),
    "E13 null": (lambda m, _, t: m.headers(t) + "Origin: null\r\n", 403, "foreign_origin"),
}


async def test_refused_upgrades_see_no_socket_and_spend_no_ticket(bench: Bench) -> None:
    door = bench.door
    token, mbp, lab = await door.invite(), door.newcomer("mbp"), door.newcomer("lab")
    ticket = await mbp.ticket(token)
    for name, (bend, status, code) in UPGRADES.items():
        answer = await mbp.send(upgrade(STATE, bend(mbp, lab, ticket)))
        assert (name, answer.status, answer.code) == (name, status, code)
        assert_refusal(answer, status, code)
    body = await mbp.exchange_body(await door.invite())  # a proof for an exchange, at a socket
    answer = await mbp.send(upgrade(STATE, mbp.headers(ticket, proof=body["nodeProof"])))
    assert_refusal(answer, 403, "node_mismatch")
    answer = await mbp.upgrade(ticket, "pipe")  # E7
    assert_refusal(answer, 403, "room_forbidden")
    for path in (f"{STATE}?ticket={ticket}", f"{STATE}?x=1"):  # E12
        assert_refusal(await mbp.send(upgrade(path, mbp.headers(ticket))), 400, "invalid_request")
    assert (await mbp.upgrade(ticket)).status == SWITCHING  # E18
    assert_refusal(await mbp.upgrade(ticket), 409, "ticket_already_used")  # E4


async def test_broken_handshakes_spend_no_ticket(bench: Bench) -> None:
    """E15 (RFC 6455 section 4.2.2): 400 without a key, 426 for a version that is not ours."""
    door = bench.door
    token, mbp = await door.invite(), door.newcomer("mbp")
    ticket = await mbp.ticket(token)
    headers = mbp.headers(ticket)
    assert (await mbp.send(upgrade(STATE, headers, key=False))).status == 400
    assert (await mbp.send(upgrade(STATE, headers, version=12))).status in {400, 426}
    plain = f"GET {STATE} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{headers}\r\n".encode()
    assert (await mbp.send(plain)).status == 404
    assert (await mbp.upgrade(ticket)).status == SWITCHING


@pytest.mark.parametrize("late_ms", [0, 1000])
async def test_a_ticket_lives_for_45_seconds(bench: Bench, late_ms: int) -> None:
    door = bench.door
    token, mbp = await door.invite(), door.newcomer("mbp")
    ticket = await mbp.ticket(token)
    expires_ms = int(_claim(ticket, "exp")) * 1000
    assert expires_ms - int(_claim(ticket, "iat")) * 1000 == TICKET_MS
    bench.clock.ahead_ms = expires_ms + late_ms - Clock().wall_ms()
    assert_refusal(await mbp.upgrade(ticket), 401, "expired_ticket")  # E3
    assert (await mbp.upgrade(await mbp.ticket(token))).status == SWITCHING


async def test_used_and_expired_is_expired(bench: Bench) -> None:
    door = bench.door
    token, mbp = await door.invite(), door.newcomer("mbp")
    ticket = await mbp.ticket(token)
    assert (await mbp.upgrade(ticket)).status == SWITCHING
    bench.clock.ahead_ms = TICKET_MS + 1000
    assert_refusal(await mbp.upgrade(ticket), 401, "expired_ticket")  # E5


async def test_agents_and_peers_have_different_doors(bench: Bench) -> None:
    """E17, M12: a ticket is no agent's token, an agent's token no ticket."""
    door = bench.door
    await door.node.add_agents("ada")
    secret = door.node.home.token(NodeId("ada")).read_text().strip()  # type: ignore[arg-type]
    token, mbp = await door.invite(), door.newcomer("mbp")
    ticket = await mbp.ticket(token)
    host = f"Host: 127.0.0.1:{bench.agent_port}\r\n"
    stream = "/v1/subscribe?stream=agents/ada/inbox"
    for scheme in ("AnsibleTicket", "Bearer"):
        headers = f"Authorization: {scheme} {ticket}\r\n"
        request = upgrade(stream, headers).replace(b"Host: 127.0.0.1\r\n", host.encode())
        answer = await ask(bench.agent_port, request)
        assert (answer.status, answer.code) == (401, "unauthorized")
    for scheme in ("AnsibleTicket", "Bearer"):
        headers = f"Authorization: {scheme} {secret}\r\nAnsible-Node-Proof: {mbp.socket_proof(ticket)}\r\n"
        assert_refusal(await mbp.send(upgrade(STATE, headers)), 401, "invalid_ticket")
    body = {**await mbp.exchange_body(token), "inviteToken": secret}
    assert_refusal(await mbp.send_exchange(body), 401, "invalid_token")
    assert (await mbp.upgrade(ticket)).status == SWITCHING


async def test_a_ticket_of_another_gateway_opens_nothing(
    bench: Bench, make_node: Callable[..., Node]
) -> None:
    """E9: the same mesh, the same kind of ticket, another issuer."""
    door = bench.door
    lab = make_node("lab")
    await lab.join(door.node)
    lab.start()
    await lab.ready()
    await lab.linked("vps")
    token, mbp = await door.invite(), door.newcomer("mbp")
    await mbp.join(token)
    foreign = Newcomer(
        lab.port, type(door.pin)(mesh=door.pin.mesh, jkt=lab.key.public.jkt, seed=False), "mbp", mbp.key
    )

    async def renewed() -> Answer | None:
        answer = await foreign.renew(("state",))
        return answer if answer.status == 200 else None

    answer = await _until(renewed)
    ticket = str(answer.json["wsTicket"])
    assert_refusal(await mbp.upgrade(ticket), 401, "invalid_ticket")


async def _until(look: Callable[[], Awaitable[Answer | None]]) -> Answer:
    async with asyncio.timeout(60):
        while (found := await look()) is None:
            await asyncio.sleep(0.05)
    return found


async def test_nothing_secret_is_written_down(bench: Bench) -> None:
    """K1, K3: not in the log at its most talkative, not in any database, not in an audit row."""
    door = bench.door
    token, mbp = await door.invite(), door.newcomer("mbp")
    body = await mbp.exchange_body(token)
    await mbp.send_exchange({**body, "admin": True})
    await mbp.send_exchange(_twice(body))
    ticket = await mbp.ticket(token)
    await mbp.send(upgrade(f"{STATE}?ticket={ticket}", mbp.headers(ticket)))
    await mbp.send(upgrade(f"/nowhere?ticket={ticket}", mbp.headers(ticket)))
    assert (await mbp.upgrade(ticket)).status == SWITCHING
    await mbp.upgrade(ticket)
    secrets = [
        token.text.partition(".")[2],
        ticket,
        body["nodeProof"],
        mbp.socket_proof(ticket),
        body["nonce"],
    ]
    files = [path for path in door.node.home.root.rglob("*") if path.is_file() and path.parent.name != "keys"]
    assert {"journal.db", "room.db", "gateway.jsonl"} <= {path.name for path in files}
    for path in files:
        content = path.read_bytes()
        for secret in secrets:
            assert secret.encode() not in content, path
        assert path.stat().st_mode & 0o077 == 0 or path.parent.name == "log", path
    assert read_invite_token(token.text).id.encode() in (door.node.home.journal.read_bytes() + _wal(door))


def _wal(door: Door) -> bytes:
    return door.node.home.journal.with_name("journal.db-wal").read_bytes()


async def test_many_requests_from_one_address_are_slowed_and_others_are_not(bench: Bench) -> None:
    """A16: each address has its own budget."""
    door = bench.door
    flood = door.newcomer("mbp")
    body, _ = flood.joiner.challenge(door.pin, b"e" * 48)
    bench.clock.stop()  # a slow machine would be given new requests as fast as it makes them
    answers = [await flood.send(post(CHALLENGE_PATH, body)) for _ in range(260)]
    slowed = [answer for answer in answers if answer.status == 429]
    assert slowed
    assert_refusal(slowed[0], 429, "rate_limited")
    assert int(slowed[0].headers["retry-after"]) >= 1
    await assert_usable(door, await door.invite(), door.newcomer("lab"))
