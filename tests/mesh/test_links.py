"""Of two links with one peer one stays, and nothing is lost or done twice meanwhile."""

import asyncio

import pytest

from gateway.judging.witness import Witness
from gateway.wire.frames import Bye, Entries, Have, Ping, Pong
from outbox.chain import Entry
from tests.mesh.acting import at_work, rest, talk
from tests.mesh.judging import faults
from tests.mesh.knocking import Newcomer, door_of
from tests.mesh.piping import open_pipe
from tests.mesh.processes import Node, until


async def since(node: Node, peer: str) -> tuple[str, int]:
    """State of the link to a peer, and since when."""
    async with node.client() as gateway:
        links = (await gateway.status()).links
    return next((str(link.state), link.since_ms) for link in links if link.node == peer)


@pytest.fixture
async def double(pair: tuple[Node, Node]) -> Newcomer:
    """Somebody with mbp's key, beside mbp."""
    vps, mbp = pair
    return (await door_of(vps)).newcomer("mbp", mbp.key)


async def test_a_second_link_of_the_same_dialler_replaces_the_first(
    pair: tuple[Node, Node], double: Newcomer
) -> None:
    """After a half-open first one, the peer that dials again must not be kept out by it."""
    vps, mbp = pair
    _, before = await since(vps, "mbp")
    witness = Witness()
    async with at_work(witness, (vps, "ada"), (mbp, "bob")):
        async with asyncio.TaskGroup() as talking:
            talking.create_task(talk(vps, "ada", "bob", 60, witness))
            talking.create_task(talk(mbp, "bob", "ada", 60, witness))
            async with open_pipe(double) as pipe:
                await pipe.greet()
                assert isinstance(await pipe.next(Have), Have)

                async def replaced() -> bool:
                    return (await since(vps, "mbp"))[1] > before

                await until(replaced, 60, "the second link is the one that counts")
        await rest(pair, 120)
    await mbp.linked("vps")
    assert faults(pair, witness.account()) == []


async def test_of_two_diallers_the_smaller_name_keeps_its_link(pair: tuple[Node, Node]) -> None:
    """mbp has dialled vps; when vps dials mbp too, that link says goodbye and the first stays."""
    vps, mbp = pair
    before = await since(mbp, "vps")
    door = await door_of(vps)
    pin = type(door.pin)(mesh=door.pin.mesh, jkt=mbp.key.public.jkt, seed=False)
    second = Newcomer(mbp.port, pin, "vps", vps.key)
    async with open_pipe(second, host="mbp") as pipe:
        await pipe.greet("mbp")
        said, _ = await pipe.farewell()
    assert isinstance(said, Bye)
    assert said.code == "link_ended"
    assert await since(mbp, "vps") == before
    assert before[0] == "up"


async def test_a_stopped_peer_goes_on_where_it_was(pair: tuple[Node, Node]) -> None:
    """SIGSTOP, some traffic, SIGCONT: the same link, or a new one, brings all of it."""
    vps, mbp = pair
    witness = Witness()
    mbp.stop_process()
    try:
        await talk(vps, "ada", "bob", 30, witness)
    finally:
        mbp.continue_process()
    async with at_work(witness, (mbp, "bob"), (vps, "ada")):
        await rest(pair, 30)
    assert faults(pair, witness.account()) == []


async def test_a_peer_of_version_1_that_may_read_all_is_served_whole_pages_and_read(
    pair: tuple[Node, Node],
) -> None:
    """It knows one outbox a side, no credit and no filters; what it does not know it is not sent."""
    vps, _ = pair
    door = await door_of(vps)
    lab = door.newcomer("lab")
    await lab.join(await door.invite("lab", reads_all=True))
    await talk(vps, "ada", "bob", 3, Witness())
    async with open_pipe(lab, version=1) as pipe:
        await pipe.greet()
        assert isinstance(await pipe.next(Have), Have)
        pages = await pipe.next(Entries)
        assert isinstance(pages, Entries)
        assert len(pages.page.entries) >= 3
        assert all(isinstance(entry, Entry) for entry in pages.page.entries)
        await pipe.send(Ping(1))
        assert isinstance(await pipe.next(Pong), Pong), "and nothing before it that version 1 cannot read"


async def test_any_other_peer_of_version_1_is_told_why_not_and_so_is_our_operator(
    pair: tuple[Node, Node],
) -> None:
    vps, _ = pair
    door = await door_of(vps)
    lab = door.newcomer("lab")
    await lab.join(await door.invite("lab"))
    async with open_pipe(lab, version=1) as pipe:
        await pipe.greet()
        said, _ = await pipe.farewell()
    assert isinstance(said, Bye)
    assert (said.code, "update lab" in said.hint) == ("version", True)

    async def shown() -> bool:
        async with vps.client() as gateway:
            links = {str(link.node): link for link in (await gateway.status()).links}
        return "lab" in links and "update lab" in links["lab"].last_error

    await until(shown, 60, "gateway doctor says why there is no link")
