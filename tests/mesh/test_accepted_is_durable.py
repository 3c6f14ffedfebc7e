"""``accepted`` is never visible before its row is on the receiver's disk, however slow that disk is.

SQLite shows a commit to other connections only after its sync has returned. So a row that a connection of
our own can read is durable, and a sync that is held back shows whether anything leaves before it.
"""

import time
from pathlib import Path

import pytest

from outbox.envelope import Ack, decode_event, decode_payload
from outbox.ids import EventId
from outbox.kinds import AckStatus, Kind
from outbox.reader import JournalReader
from outbox.records import DeliveryState
from tests.mesh.processes import ENGINE_HOST, Node, until
from tests.mesh.slowing import slow_disk

DELAY_MS = 250
ACCEPTED = {DeliveryState.ACCEPTED, DeliveryState.PROCESSED, DeliveryState.REPLIED}


def on_disk(journal: JournalReader, event: EventId) -> bool:
    """Whether the receiver's journal has both the row and the ACK that speaks of it."""
    if not journal.ledger(event):
        return False
    answers = [decode_event(entry.body) for entry in journal.events_about(event)]
    acks = [decode_payload(answer, Ack) for answer in answers if answer.kind == Kind.ACK]
    assert AckStatus.ACCEPTED in {ack.status for ack in acks}, "row and ACK come together"
    return True


@pytest.mark.parametrize(
    "engine_host", [ENGINE_HOST, pytest.param("process", marks=pytest.mark.long, id="aside")]
)
async def test_the_sender_never_knows_before_the_receivers_disk(
    pair: tuple[Node, Node], mesh_dir: Path
) -> None:
    vps, mbp = pair
    there, here = mbp.journal(), vps.journal()
    early = 0
    try:
        async with slow_disk(mbp, DELAY_MS, mesh_dir / "strace.txt"), vps.client() as gateway:
            for number in range(5):
                sent_at = time.monotonic()  # before: how late a busy machine lets us hear of it is no matter
                event = (await gateway.agent("ada").send("bob", f"slow {number}")).event_id

                async def look(event: EventId = event) -> bool:
                    nonlocal early
                    row = here.obligations(event)[0]
                    assert row is not None
                    if row.state not in ACCEPTED:
                        early += not on_disk(there, event)
                        return False
                    assert on_disk(there, event), "accepted is visible and its row is not on disk"
                    return True

                await until(look, 60, "it is accepted")
                assert (time.monotonic() - sent_at) * 1000 >= DELAY_MS * 0.9, "the disk was not slow"
    finally:
        there.close()
        here.close()
    assert early >= 5, "nobody looked while the receiver's disk was still busy"


@pytest.mark.parametrize("round_", range(3))
async def test_what_was_seen_accepted_survives_a_kill_at_that_moment(
    pair: tuple[Node, Node], mesh_dir: Path, round_: int
) -> None:
    vps, mbp = pair
    async with slow_disk(mbp, DELAY_MS // 2, mesh_dir / "strace.txt"), vps.client() as gateway:
        ada = gateway.agent("ada")
        events = [(await ada.send("bob", f"{round_} {number}")).event_id for number in range(20)]

        async def look() -> list[EventId]:
            return [event for event in events if (await ada.trace(event)).state in ACCEPTED]

        seen = await until(look, 60, "one is accepted")
        mbp.kill()
        seen = await look()
    journal = mbp.journal()
    try:
        for event in seen:
            assert on_disk(journal, event)
    finally:
        journal.close()
    mbp.start()
    await mbp.ready()
    async with vps.client() as gateway:
        for event in events:
            await gateway.agent("ada").wait_for(event, "accepted", 30)
