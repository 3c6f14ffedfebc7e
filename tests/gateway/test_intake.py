"""When a tick is due, and what it gets: nothing overtakes in its line, is left behind, or waits for ever."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import intake
from gateway.brought import bringer, cost
from gateway.engine.inputs import Grant, Input, LinkDown, PageRead
from gateway.errors import Busy
from gateway.intake import Intake
from gateway.limits import BROUGHT_TICK_MAX, LINE_INPUTS_MAX
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
URGENT = LinkDown(STREAM.node)


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
    fit = -(-(BROUGHT_TICK_MAX - cost(URGENT)) // cost(ACKS))
    for _ in range(fit + 1):
        waiting.put(ACKS)
    assert waiting.take() == [URGENT, *fit * [ACKS]]
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


STEPS = st.one_of(
    st.just("take"),
    st.just("asked"),
    st.tuples(st.sampled_from(["urgent", "acks"]), st.sampled_from([NodeId("a"), NodeId("b"), NodeId("c")])),
)


@given(st.lists(STEPS, max_size=40))
def test_all_comes_out_once_each_line_in_the_order_in_which_it_came(
    steps: list[str | tuple[str, NodeId]],
) -> None:
    async def run() -> None:
        waiting, taken = Intake(), []
        put: dict[NodeId | None, list[Input]] = {}
        for number, step in enumerate(steps):
            if step == "take":
                taken += waiting.take()
                continue
            if step == "asked":
                peer, item = None, Grant(number, "one", 1)
            elif step[0] == "acks":
                peer = NodeId(step[1])
                item = PageRead(ACKS.node, ACKS.page, peer, number)
            else:
                peer = NodeId(step[1])
                item = LinkDown(peer)
            put.setdefault(peer, []).append(item)
            waiting.put(item)
        async with asyncio.timeout(WITHIN_S):
            while len(taken) < sum(map(len, put.values())):
                await waiting.due(None)
                taken += waiting.take()
        for peer, items in put.items():
            assert [item for item in taken if bringer(item) == peer] == items
        assert len(waiting) == 0

    asyncio.run(run())


async def test_requests_have_room_whatever_peers_bring(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the other way round: each waits for its own line only."""
    monkeypatch.setattr(intake, "QUEUE_INPUTS_MAX", 2)
    waiting = Intake()
    for _ in range(LINE_INPUTS_MAX):
        waiting.put(ACKS)
    waiting.need_room(2)
    async with asyncio.timeout(WITHIN_S):
        await waiting.room()
        await waiting.room_of(NodeId("other"))
    full = asyncio.ensure_future(waiting.room_of(STREAM.node))
    waiting.put(Grant(1, "one", 1))
    waiting.put(Grant(2, "one", 1))
    with pytest.raises(Busy):
        waiting.need_room()
    await asyncio.sleep(0)
    assert not full.done()
    assert len(waiting.take()) > 2
    async with asyncio.timeout(WITHIN_S):
        await full
