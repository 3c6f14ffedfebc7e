"""What holds an event loop: callbacks that ran longer than a few milliseconds, by where they come from."""

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

SLOW_S = 0.005
_TOOK = re.compile(r"took (\d+\.\d+) seconds")
_CORO = re.compile(r"coro=<([\w.<>]+)")
_CALL = re.compile(r"<(?:\w*Handle) ([^\s(]+)")


class SlowCallbacks(logging.Handler):
    """Collects what asyncio's debug mode says about slow callbacks: seconds, by origin."""

    def __init__(self) -> None:
        super().__init__()
        self.by_origin: dict[str, list[float]] = defaultdict(list)

    def emit(self, record: logging.LogRecord) -> None:
        """One callback."""
        text = record.getMessage()
        took = _TOOK.search(text)
        if took is not None:
            origin = _CORO.search(text) or _CALL.search(text)
            self.by_origin[origin[1] if origin else text[:80]].append(float(took[1]))


@contextmanager
def slow_callbacks() -> Iterator[SlowCallbacks]:
    """Watch the running loop."""
    loop, logger, handler = asyncio.get_running_loop(), logging.getLogger("asyncio"), SlowCallbacks()
    before = logger.propagate, loop.get_debug(), loop.slow_callback_duration
    logger.addHandler(handler)
    logger.propagate = False
    loop.slow_callback_duration = SLOW_S
    loop.set_debug(True)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.propagate, debug, loop.slow_callback_duration = before
        loop.set_debug(debug)
