"""Named places where a test may kill this process, to see that what was promised before them still holds.

Without ``GATEWAY_CRASHPOINT`` in the environment at import they do nothing. ``GATEWAY_CRASHPOINT=name`` kills
at the first passing, ``name:3`` at the third; SIGKILL, so that nothing is flushed, closed or said. A
simulation of many processes in one watches the passings instead, and kills none but its own.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

from gateway.errors import ConfigError

VARIABLE = "GATEWAY_CRASHPOINT"


class CrashPoint(StrEnum):
    """All of them; a test walks this table."""

    ENGINE_BEFORE_COMMIT = "engine_before_commit"
    ENGINE_AFTER_COMMIT = "engine_after_commit"
    ENGINE_AFTER_EFFECTS = "engine_after_effects"
    LINK_BEFORE_SUBMIT = "link_before_submit"
    LINK_AFTER_COMMIT = "link_after_commit"
    LINK_AFTER_SEEN = "link_after_seen"
    EXCHANGE_BEFORE_COMMIT = "exchange_before_commit"
    EXCHANGE_AFTER_COMMIT = "exchange_after_commit"
    UPGRADE_BEFORE_COMMIT = "upgrade_before_commit"
    UPGRADE_AFTER_COMMIT = "upgrade_after_commit"
    ANSWER_BEFORE_SEND = "answer_before_send"
    DELIVER_BEFORE_SEND = "deliver_before_send"
    DELIVER_AFTER_SEND = "deliver_after_send"
    BLOB_AFTER_SYNC = "blob_after_sync"
    BLOB_AFTER_RENAME = "blob_after_rename"
    ROOM_AFTER_APPLY = "room_after_apply"
    COLLECT_AFTER_TMP = "collect_after_tmp"
    COLLECT_AFTER_RENAME = "collect_after_rename"


class Fuse:
    """Burns down by one at each passing of its point."""

    def __init__(self, point: CrashPoint, passings: int) -> None:
        self.point = point
        self.left = passings

    def burns_out(self, point: CrashPoint) -> bool:
        """Whether this passing is the fatal one."""
        if point is not self.point:
            return False
        self.left -= 1
        return self.left == 0


def fuse(setting: str) -> Fuse | None:
    """What a value of the variable means; empty: nothing. Raises ConfigError: no typo passes a test."""
    name, colon, nth = setting.partition(":")
    if not setting:
        return None
    if name not in set(CrashPoint) or (colon and not (nth.isascii() and nth.isdigit() and int(nth))):
        raise ConfigError(f"{VARIABLE}={setting[:80]!r} names no crash point", hint="use name or name:nth")
    return Fuse(CrashPoint(name), int(nth or 1))


Trap = Callable[[CrashPoint], None]
"""Is told of every passing; does not return from the fatal one."""


def trap(setting: str) -> Trap | None:
    """The trap that the variable asks for. Raises ConfigError."""
    armed = fuse(setting)
    if armed is None:
        return None

    def spring(point: CrashPoint) -> None:
        if armed.burns_out(point):
            os.kill(os.getpid(), signal.SIGKILL)

    return spring


_trap = trap(os.environ.get(VARIABLE, ""))


def crashpoint(point: CrashPoint) -> None:
    """Die here if a test asked for it."""
    if _trap is not None:
        _trap(point)


@contextmanager
def watching(watcher: Trap) -> Iterator[None]:
    """Let a simulation decide at each passing, in place of what the variable asked for."""
    global _trap  # noqa: PLW0603 - the points are the process's, and so is their trap
    before, _trap = _trap, watcher
    try:
        yield
    finally:
        _trap = before
