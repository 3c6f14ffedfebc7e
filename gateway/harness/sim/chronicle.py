"""The trace of a world: one line an event, the same bytes for the same seed.

::

    12.345  n1  sent        evt_… to bob@n2
    seconds who what        details

Only the end is kept in memory; the digest covers all of it.
"""

from collections import deque
from collections.abc import Callable
from hashlib import sha256

LINES_KEPT = 50_000
"""Some MiB: the last hours of a world, which is where the trouble is."""


class Chronicle:
    """Takes lines; remembers the last ones and the digest of all."""

    def __init__(self, now_us: Callable[[], int], *, echo: Callable[[str], None] | None = None) -> None:
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self.count = 0
        self._now_us = now_us
        self._echo = echo
        self._digest = sha256()

    def note(self, who: str, what: str, details: str = "") -> None:
        """One line."""
        line = f"{self._now_us() / 1e6:.3f} {who} {what} {details}".rstrip()
        self.count += 1
        self.lines.append(line)
        self._digest.update(line.encode() + b"\n")
        if self._echo is not None:
            self._echo(line)

    def digest(self) -> str:
        """Hex SHA-256 of all lines so far."""
        return self._digest.hexdigest()
