"""Many at one door at once: what is single-use is used once, however the requests fall."""

import asyncio

from gateway.links.peering import PATHS
from tests.mesh.knocking import SWITCHING, assert_refusal, door_of, upgrade
from tests.mesh.processes import Node


async def test_sixty_keys_and_one_invite(vps: Node) -> None:
    """F1: at most one ticket, and with two valid keys the invite is contested and the ticket void."""
    door = await door_of(vps)
    token = await door.invite()
    crowd = [door.newcomer(f"node-{number}") for number in range(60)]
    bodies = await asyncio.gather(*(one.exchange_body(token) for one in crowd))
    answers = await asyncio.gather(
        *(one.send_exchange(body) for one, body in zip(crowd, bodies, strict=True))
    )
    won = [number for number, answer in enumerate(answers) if answer.status == 200]
    for number, answer in enumerate(answers):
        if number not in won:
            assert_refusal(answer, 409, "token_already_used")
    assert len(won) == 1
    assert (await door.invites())[token.id] == "contested"
    late = await crowd[won[0]].upgrade(str(answers[won[0]].json["wsTicket"]))
    assert_refusal(late, 401, "invalid_ticket")
    assert vps.running


async def test_a_hundred_upgrades_and_one_ticket(vps: Node) -> None:
    """F2: one socket, from whichever address."""
    door = await door_of(vps)
    mbp = door.newcomer("mbp")
    ticket = await mbp.ticket(await door.invite())
    request = upgrade(PATHS["state"], mbp.headers(ticket))
    doors = [door.newcomer("mbp", mbp.key) for _ in range(100)]
    answers = await asyncio.gather(*(one.send(request) for one in doors))
    opened = [answer for answer in answers if answer.status == SWITCHING]
    assert len(opened) == 1
    for answer in answers:
        if answer is not opened[0]:
            assert_refusal(answer, 409, "ticket_already_used")


async def test_twenty_exchanges_of_one_key(vps: Node) -> None:
    """F3: each answer voids the ticket of the one before; one connection."""
    door = await door_of(vps)
    token, mbp = await door.invite(), door.newcomer("mbp")
    answers = await asyncio.gather(*(mbp.exchange(token) for _ in range(20)))
    assert [answer.status for answer in answers] == [200] * 20
    upgrades = await asyncio.gather(*(mbp.upgrade(str(answer.json["wsTicket"])) for answer in answers))
    assert sorted(answer.status for answer in upgrades) == [SWITCHING, *[401] * 19]
    assert (await door.invites())[token.id] == "used"


async def test_renewals_side_by_side(vps: Node) -> None:
    """F7: all are granted or slowed, and each ticket opens one socket."""
    door = await door_of(vps)
    mbp = door.newcomer("mbp")
    await mbp.join(await door.invite())
    answers = await asyncio.gather(*(mbp.renew(("state",)) for _ in range(40)))
    assert {answer.status for answer in answers} == {200}
    tickets = [str(answer.json["wsTicket"]) for answer in answers]
    doors = [door.newcomer("mbp", mbp.key) for _ in tickets * 2]
    upgrades = await asyncio.gather(
        *(one.upgrade(ticket) for one, ticket in zip(doors, tickets * 2, strict=True))
    )
    statuses = sorted(answer.status for answer in upgrades)
    assert statuses == [SWITCHING] * 40 + [409] * 40
