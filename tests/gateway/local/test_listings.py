"""Reads of the mesh and the journal, operator's routes."""

import asyncio
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from auth.joincodes import decode_join_code
from gateway.api.delivery_state import WAITING
from gateway.api.mesh import LinkState
from gateway.api.trace import Stage
from gateway.client import GatewayClient
from gateway.clock import Clock
from gateway.errors import Denied
from outbox.ids import AgentId
from outbox.records import DeliveryState

if TYPE_CHECKING:
    from tests.gateway.local.conftest import LocalNode


async def get(node: "LocalNode", name: str, path: str, **params: str) -> tuple[int, Any]:
    async with node.http(name) as http:
        answer = await http.get(path, params=params)
    return answer.status_code, answer.json()


async def test_status_nodes_and_agents(node: "LocalNode") -> None:
    async with node.client() as gateway:
        status, nodes, agents = await gateway.status(), await gateway.nodes(), await gateway.agents()
    assert (status.node, status.ready, status.agents, status.links[0].state) == ("vps", True, 2, "down")
    assert [(row.node, row.here, row.link) for row in nodes] == [("lab", False, "down"), ("vps", True, None)]
    assert [row.clock_ahead_ms for row in nodes] == [-70, None]
    assert [(row.name, row.node, row.status) for row in agents] == [
        ("bob", "vps", "active"),
        ("far", "lab", "active"),
        ("gone", None, "removed"),
        ("jen", "vps", "active"),
    ]


async def test_an_agent_is_active_when_it_says_something_and_not_when_its_operator_does(
    node: "LocalNode",
) -> None:
    async def shown() -> "tuple[dict[str, int], dict[str, int | None]]":
        async with node.client() as gateway:
            status, rows = await gateway.status(), await gateway.agents()
        return dict(status.active), {row.name: row.last_active_ms for row in rows}

    async with node.client() as gateway:
        await gateway.agent("jen").inbox()
    assert await shown() == ({}, {"bob": None, "far": None, "gone": None, "jen": None})
    before_ms = node.clock.wall_ms()
    async with node.http("jen") as http:
        await http.get("/v1/inbox")
    async with GatewayClient(url=node.url, token=node.token("bob")) as gateway:
        await gateway.agent("bob").send("jen", "hi")
    after_ms = node.clock.wall_ms()
    node.told_active = {AgentId("far"): 1_000, AgentId("bob"): 7}
    here, known = await shown()
    assert set(here) == {"bob", "jen"}
    assert all(before_ms <= at_ms <= after_ms for at_ms in here.values())
    assert known == {**here, "gone": None, "far": 1_070}, "the clock of far's node is 70 ms behind ours"


async def test_what_waits_is_found_behind_newer_rows_that_wait_for_nothing(
    node: "LocalNode", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.endpoints.journal.ROWS_MAX", 3)
    async with node.client() as gateway:
        sent = await gateway.agent("jen").send("far", "are you there?")
        for number in range(4):
            await gateway.agent("jen").send("bob", str(number))
        rows = await gateway.deliveries(state="waiting_for_owner")
        assert [row.event_id for row in rows] == [sent.event_id]
        assert await gateway.deliveries(state="waiting_for_room") == []
        assert len(await gateway.deliveries()) == 3


async def test_waiting_is_shown_and_not_stored(node: "LocalNode") -> None:
    async with node.client() as gateway:
        sent = await gateway.agent("jen").send("far", "are you there?")
        shown = [(await gateway.trace(sent.event_id)).state]
        node.online = True
        node.see()
        shown.append((await gateway.deliveries())[0].state)
        assert len(await gateway.deliveries(state="waiting_for_link")) == 1
        assert await gateway.deliveries(state="waiting_for_owner") == []
        node.link = LinkState.UP
        shown.append((await gateway.trace(sent.event_id)).state)
        for state in (*DeliveryState, *WAITING):
            await gateway.deliveries(state=state)
        with pytest.raises(Denied) as refused:
            await gateway.deliveries(state="lost")
        assert all(state in str(refused.value) for state in (*DeliveryState, *WAITING))
    assert shown == ["waiting_for_owner", "waiting_for_link", "emitted"]
    row = node.reader.obligations(sent.event_id)[0]
    assert row is not None
    assert (row.state, row.attempt) == ("emitted", 1)


async def test_a_trace_shows_every_step_and_only_to_those_it_is_about(node: "LocalNode") -> None:
    async with node.client() as gateway:
        await gateway.add_agent("eve")
        sent = await gateway.agent("jen").send("bob", "x")
        await gateway.agent("bob").reply(sent.event_id, "y")
        found = await gateway.trace(sent.event_id)
        with pytest.raises(Denied) as refused:
            await gateway.trace("evt_" + "0" * 32)
        assert refused.value.wire_code == "not_found"
    assert [step.stage for step in found.steps] == [
        Stage.EMITTED,
        Stage.ACCEPTED,
        Stage.ENGAGED,
        Stage.REPLIED,
        Stage.PROCESSED,
    ]
    assert [step.seq for step in found.steps if step.seq is not None] == [1, 2, 3, 4]
    for name, status in (("jen", 200), ("bob", 200), ("eve", 404)):
        assert (await get(node, name, f"/v1/trace/{sent.event_id}"))[0] == status
    assert (await get(node, "eve", "/v1/deliveries"))[1] == []
    assert len((await get(node, "jen", "/v1/deliveries"))[1]) == 1


async def test_dead_letters_and_their_incidents(node: "LocalNode") -> None:
    async with node.client() as gateway:
        sent = await gateway.agent("jen").send("gone", "x")
        assert [row.event_id for row in await gateway.dead()] == [sent.event_id]
        assert [(row.kind, row.subject) for row in await gateway.incidents()] == [
            ("dead_letter", sent.event_id)
        ]
        assert await gateway.incidents(closed=True) == await gateway.incidents()


async def test_the_outbox_is_read_in_pieces(node: "LocalNode") -> None:
    async with node.client() as gateway:
        for number in range(4):
            await gateway.agent("jen").send("bob", f"m{number}")
        seqs: list[int] = []
        after, head = 0, 1
        while after < head:
            piece = await gateway.outbox(after=after, limit=3)
            assert len(piece.entries) <= 3
            seqs += [row.seq for row in piece.entries]
            after, head = piece.next, piece.head
        assert seqs == list(range(1, 9))
        with pytest.raises(Denied) as refused:
            await gateway.outbox(after=99)
    assert refused.value.wire_code == "cursor_past_end"


async def test_the_inbox_is_peeked_at_in_pieces(node: "LocalNode") -> None:
    async with node.client() as gateway:
        bob = gateway.agent("bob")
        events = [(await gateway.agent("jen").send("bob", f"m{n}")).event_id for n in range(5)]
        await bob.ack(events[0])
        assert [row.event_id for row in await bob.inbox()] == events[1:]
        assert [row.event_id for row in await bob.inbox(done=True)] == events
        assert [row.event_id for row in await bob.inbox(limit=2)] == events[3:]
        assert [row.event_id for row in await bob.inbox(after=events[1], limit=2)] == events[2:4]
        assert len(await bob.inbox()) == 4, "looking acknowledges nothing"
        for reader, after in ((bob, "evt_" + "0" * 32), (gateway.agent("jen"), events[1])):
            with pytest.raises(Denied) as caught:
                await reader.inbox(after=after)
            assert caught.value.wire_code == "not_found", "rows from elsewhere do not follow"
    for params in ({"limit": "0"}, {"limit": "x"}, {"all": "maybe"}, {"after": "evt_1"}, {"colour": "red"}):
        assert (await get(node, "bob", "/v1/inbox", **params))[0] == 400


async def test_a_new_agents_token_is_on_disk_and_opens_only_its_own_inbox(node: "LocalNode") -> None:
    async with node.client() as gateway:
        added = await gateway.add_agent("eve")
        file = Path(added.token_file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        before = file.read_text()
        for name, code in (("eve", "name_taken"), ("far", "name_taken"), ("Eve!", "invalid_id")):
            with pytest.raises(Denied) as refused:
                await gateway.add_agent(name)
            assert refused.value.wire_code == code
        assert file.read_text() == before
        assert not node.home.token(AgentId("far")).exists()
        assert (await get(node, "eve", "/v1/inbox"))[0] == 200
        assert before.strip() not in repr(added)
        async with node.http("eve") as http:
            await gateway.remove_agent("eve")
            assert (await http.get("/v1/inbox")).status_code == 401
        assert not file.exists()
        with pytest.raises(Denied) as refused:
            await gateway.remove_agent("eve")
        assert refused.value.wire_code == "not_found"


async def test_invites_are_shown_once_and_listed_without_their_secret(node: "LocalNode") -> None:
    async with node.client() as gateway:
        made = await gateway.invite("lab", ttl_s=60)
        code = decode_join_code(made.join_code)
        assert (code.expected_node, code.expires_at_ms > Clock().wall_ms()) == ("lab", True)
        listed = await gateway.invites()
        assert [(row.invite_id, row.status, row.node) for row in listed] == [(made.invite_id, "open", "lab")]
        assert code.token.text not in msgspec.json.encode(listed).decode()
        await gateway.revoke_invite(made.invite_id)
        assert [row.status for row in await gateway.invites()] == ["revoked"]
        reader = await gateway.invite("mirror", reads_all=True)
        entitled = {row.invite_id for row in await gateway.invites() if row.reads_all}
        assert entitled == {reader.invite_id}
        with pytest.raises(Denied):
            await gateway.revoke_invite("inv_aaaaaaaaaaaaaaaa")
        with pytest.raises(Denied) as refused:
            await gateway.invite("Not A Name")
    assert refused.value.wire_code == "invalid_id"


async def test_a_dead_letter_is_sent_again_once_or_leaves_the_list(node: "LocalNode") -> None:
    async with node.client() as gateway:
        me = gateway.agent("jen")
        sent = {(await me.send("gone", f"{n}")).event_id for n in range(4)}
        listed = [row.event_id for row in await gateway.dead()]
        assert listed == sorted(sent, reverse=True)  # by the millisecond; several may be of one
        assert [row.event_id for row in await gateway.dead(before=listed[1])] == listed[2:]
        with pytest.raises(Denied) as caught:
            await gateway.redrive(listed[0])
        assert caught.value.wire_code == "not_found"
        await gateway.add_agent("gone")
        node.see()
        again = await gateway.redrive(listed[0], expires_in_ms=60_000)
        assert (await gateway.redrive(listed[0])).event_id == again.event_id
        assert await gateway.prune_dead(listed[1]) == 1
        assert [row.event_id for row in await gateway.dead()] == listed[2:]
        assert await gateway.prune_dead(older_than_ms=3_600_000) == 0
        assert await gateway.prune_dead() == 2
        assert await gateway.dead() == []
        assert {row.event_id for row in await gateway.dead(everything=True)} == set(listed)
        assert (await gateway.trace(listed[1])).state == "dead_letter"
    async with node.http("jen") as http:
        assert (await http.post(f"/v1/dead/{listed[0]}/redrive", json={})).status_code == 403


async def test_an_agent_says_who_stands_in_for_it_and_where_it_belongs(node: "LocalNode") -> None:
    async with node.client() as gateway:
        await gateway.add_agent("guarded", fallback=["lab"], grace_ms=5_000, groups=["ops"])
        changed = await gateway.set_agent("guarded", groups=["ops", "night"])
        assert (changed.fallback, changed.grace_ms, changed.groups) == (("lab",), 5_000, ("ops", "night"))
        with pytest.raises(Denied) as caught:
            await gateway.add_agent("far", fallback_of="lab")
        assert "does not name vps as its fallback" in str(caught.value)
        for many in ({"fallback": [f"n{n}" for n in range(9)]}, {"groups": [f"g{n}" for n in range(17)]}):
            with pytest.raises(Denied):
                await gateway.set_agent("guarded", **many)


async def test_what_unanswered_events_wait_for_is_counted(node: "LocalNode") -> None:
    async with node.client() as gateway:
        me = gateway.agent("jen")
        await me.send("far", "are you there?")
        await me.send("gone", "come back", wait=True)
        status = await gateway.status()
        assert [(row.node, row.state, row.count) for row in status.waiting] == [
            (None, "waiting_for_owner", 1),
            ("lab", "waiting_for_owner", 1),
        ]


async def test_one_event_to_several_has_a_receipt_each(node: "LocalNode") -> None:
    async with node.client() as gateway:
        sent = await gateway.agent("jen").send("bob,far,bob", "hello both")
        assert (sent.to.agent, sent.nodes) == ("bob,far", ("lab", "vps"))
        found = await gateway.trace(sent.event_id)
        states = {row.node: row.state for row in found.receipts}
        assert states == {"lab": "waiting_for_owner", "vps": "accepted"}


async def test_incidents_that_were_seen_are_closed_and_others_end_by_themselves(node: "LocalNode") -> None:
    async with node.client() as gateway:
        failed = (await gateway.agent("jen").send("bob", "do it")).event_id
        dead = (await gateway.agent("jen").send("gone", "x")).event_id
        async with gateway.agent("bob").turns("b") as turns, asyncio.timeout(60):
            await (await anext(turns)).failed("no")
            while len(await gateway.incidents()) < 2:
                await asyncio.sleep(0)
        assert (await gateway.status()).incidents_open == 2
        for refused in ({"kind": "dead_letter"}, {}):
            with pytest.raises(Denied) as caught:
                await gateway.close_incidents(**refused)
            assert caught.value.wire_code == "invalid_request"
        with pytest.raises(Denied) as caught:
            await gateway.close_incidents(dead)
        assert (caught.value.wire_code, "gateway dead prune" in caught.value.hint) == ("not_found", True)
        assert await gateway.close_incidents(failed, kind="turn_failed") == 1
        assert [row.subject for row in await gateway.incidents()] == [dead]
        assert {row.kind for row in await gateway.incidents(closed=True)} == {"turn_failed", "dead_letter"}
        with pytest.raises(Denied) as caught:
            async with GatewayClient(socket=node.home.socket, token=node.token("bob")) as bobs:
                await bobs.close_incidents(kind="turn_failed")
        assert caught.value.wire_code == "forbidden"
