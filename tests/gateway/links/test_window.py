"""Flow control of a link: closed by what is under way, opened by what was seen."""

import asyncio

from gateway.links.limits import LINK_WINDOW_BYTES
from gateway.links.window import Window


async def is_open(window: Window) -> bool:
    waiting = asyncio.ensure_future(window.opened())
    await asyncio.sleep(0)
    done = waiting.done()
    waiting.cancel()
    return done


async def test_a_window_closes_when_it_is_full_and_opens_again() -> None:
    window = Window()
    window.sent(10, LINK_WINDOW_BYTES - 1)
    assert await is_open(window)
    window.sent(20, 1)
    assert not await is_open(window)
    window.seen(9)
    assert not await is_open(window)
    window.seen(10)
    assert await is_open(window)
    window.sent(30, LINK_WINDOW_BYTES)
    window.seen(30)
    assert await is_open(window)
