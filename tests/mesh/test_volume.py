"""Much at once: large bodies, many senders, a reader that comes late."""

import asyncio

from gateway.judging.witness import Witness
from outbox.limits import PAYLOAD_BYTES_MAX
from tests.mesh.acting import at_work, rest, send
from tests.mesh.judging import faults
from tests.mesh.processes import Node, until

LARGE = 80
SMALL = 400


async def test_large_bodies_in_one_go_fit_through_a_link(pair: tuple[Node, Node]) -> None:
    """Twenty megabytes in a few ticks: batches, frames and the window are each smaller than that."""
    vps, mbp = pair
    text = "x" * (PAYLOAD_BYTES_MAX - 100)
    async with vps.client() as gateway:
        ada = gateway.agent("ada")
        await asyncio.gather(*(ada.send("bob", f"{number:02d}{text}") for number in range(LARGE)))

        async def accepted() -> bool:
            return (await gateway.status()).deliveries.get("accepted", 0) >= LARGE

        await until(accepted, 60, "all large messages are accepted")
    async with mbp.client() as gateway:
        assert (await gateway.status()).received == {"queued": LARGE}


async def test_many_senders_at_once_and_a_reader_that_was_away(pair: tuple[Node, Node]) -> None:
    vps, mbp = pair
    mbp.kill()
    witness = Witness()
    async with vps.client() as gateway:
        ada = gateway.agent("ada")
        gate = asyncio.Semaphore(50)

        async def one(number: int) -> None:
            async with gate:
                await send(vps, ada, "bob", f"many-{number}", witness)

        await asyncio.gather(*(one(number) for number in range(SMALL)))
    mbp.start()
    await mbp.ready()
    async with at_work(witness, (mbp, "bob"), (vps, "ada")):
        await rest(pair, SMALL)
    assert faults(pair, witness.account()) == []
