"""Counters of heartbeats: they follow the wall clock and never go back, whatever is done to that clock.

Others believe a heartbeat only if its counter is higher than the last one of that node. So a bound that no
counter has passed stands in the home, an hour ahead of the counters, and a start goes on above it: a node
whose clock was set back is heard all the same.
"""

from pathlib import Path

import structlog

from gateway.errors import HomeError
from gateway.home import read_private, write_private
from gateway.limits import BEATS_AHEAD_MS

log = structlog.get_logger(__name__)


class BeatCounter:
    """Of one node; without a path it lasts as long as the object."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._bound = self._last = self._kept()

    def next(self, wall_ms: int) -> int:
        """The counter of a heartbeat now; higher than every one before."""
        self._last = max(self._last + 1, wall_ms)
        if self._last > self._bound and self._path is not None:
            self._keep(self._path, self._last + BEATS_AHEAD_MS)
        return self._last

    def _kept(self) -> int:
        if self._path is None or not self._path.exists():
            return 0
        try:
            return max(0, int(read_private(self._path)))
        except (HomeError, ValueError) as error:
            log.warning("beats.unread", why=str(error))
            return 0

    def _keep(self, path: Path, bound: int) -> None:
        """A disk that is full takes nothing from being alive: it is tried again with the next heartbeat."""
        try:
            write_private(path, str(bound).encode())
            self._bound = bound
        except HomeError as error:
            log.warning("beats.unkept", why=str(error))
