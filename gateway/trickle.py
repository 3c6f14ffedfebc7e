"""Log lines that strangers cause: a few of each kind a minute are told, of the rest how many there were.

Whoever reaches the peer listener can make a gateway refuse as often as it likes. A line for each would push
everything else out of the log, which keeps 60 MiB.
"""

from gateway.limits import STRANGERS_LINES, STRANGERS_WINDOW_S

STRANGERS_DO = frozenset({"peer.refused", "Invalid HTTP request received."})
"""Events, ours and the server's, that need no admission to happen."""


class Trickle:
    """Of each kind, how many lines went out in this window and how many did not; a clock set back ends it."""

    def __init__(self) -> None:
        self._windows: dict[str, tuple[float, int, int]] = {}
        """By kind: when it began, lines written, lines left out."""

    def pour(self, kind: str, now_s: float) -> int | None:
        """Whether to write a line: None if not, else how many of its kind were left out before it."""
        if kind not in STRANGERS_DO:
            return 0
        begun_s, written, left_out = self._windows.get(kind, (now_s, 0, 0))
        if not 0 <= now_s - begun_s < STRANGERS_WINDOW_S:
            self._windows[kind] = (now_s, 1, 0)
            return left_out
        if written < STRANGERS_LINES:
            self._windows[kind] = (begun_s, written + 1, left_out)
            return 0
        self._windows[kind] = (begun_s, written, left_out + 1)
        return None
