"""When a tick is due, and what it gets: nothing overtakes, nothing is left behind, nothing waits for ever."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import intake
from gateway.engine.inputs import Input, LinkDown, PageRead
from gateway.intake import Intake
from gateway.limits import TICK_INPUTS_MAX
from outbox.envelope import Ack
from outbox.ids import NodeId
from outbox.kinds import AckStatus
from tests.gateway.outboxes import STREAM, Outbox, answer, entry, event_id

WITHIN_S = 60.0
FOR_EVER_MS = 3_600_000
ACKS = PageRead(
    STREAM.node,
    Outbox([entry(1, answer(2, 1, Ack(ref=event_id(1), status=AckStatus.ACCEPTED)))]).pages[0],  # type: ignore[arg-type]
)
URGENT = LinkDown(NodeId("vps"))


async def is_due(waiting: Intake) -> bool:
    """After all that is ready now has run."""
    due = asyncio.ensure_future(waiting.due(None))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    due.cancel()
    return not (await asyncio.gather(due, return_exceptions=True))[0]


async def test_a_page_of_acks_is_taken_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "LINGER_MS", FOR_EVER_MS)
    waiting = Intake()
    waiting.put(ACKS)
    assert not await is_due(waiting)
    waiting.put(URGENT)
    assert await is_due(waiting)
    assert waiting.take() == [ACKS, URGENT]
    assert not await is_due(waiting)


async def test_it_waits_only_so_long() -> None:
    waiting = Intake()
    waiting.put(ACKS)
    async with asyncio.timeout(WITHIN_S):
        await waiting.due(None)
    assert waiting.take() == [ACKS]


async def test_time_alone_makes_a_tick_due_and_takes_it_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "LINGER_MS", FOR_EVER_MS)
    waiting = Intake()
    waiting.put(ACKS)
    async with asyncio.timeout(WITHIN_S):
        await waiting.due(0.001)
    assert waiting.take() == [ACKS]


async def test_what_a_tick_left_behind_waits_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "LINGER_MS", FOR_EVER_MS)
    waiting = Intake()
    waiting.put(URGENT)
    for _ in range(TICK_INPUTS_MAX):
        waiting.put(ACKS)
    assert len(waiting.take()) == TICK_INPUTS_MAX
    assert await is_due(waiting)
    assert waiting.take() == [ACKS]


async def test_who_waited_once_is_not_what_the_next_one_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer of a page that was taken along is not that of the page after it."""
    waiting = Intake()
    waiting.put(ACKS)
    waiting.put(URGENT)
    waiting.take()
    monkeypatch.setattr(intake, "LINGER_MS", 1)
    waiting.put(ACKS)
    async with asyncio.timeout(WITHIN_S):
        await waiting.due(None)
    assert waiting.take() == [ACKS]


@given(st.lists(st.one_of(st.just("acks"), st.just("urgent"), st.just("take")), max_size=40))
def test_all_comes_out_once_in_the_order_in_which_it_came(steps: list[str]) -> None:
    async def run() -> None:
        waiting, put, taken = Intake(), [], []
        for number, step in enumerate(steps):
            if step == "take":
                taken += waiting.take()
                continue
            item: Input = PageRead(ACKS.node, ACKS.page, None, number)
            if step == "urgent":
                item = LinkDown(NodeId(f"n{number}"))
            put.append(item)
            waiting.put(item)
        async with asyncio.timeout(WITHIN_S):
            while len(taken) < len(put):
                await waiting.due(None)
                taken += waiting.take()
        assert taken == put

    asyncio.run(run())
