"""How many bytes of blobs may be under way to us over one link.

What is under way stands before the messages that come after it, on a slow link for a long time. So the window
follows the time that a want takes to be answered: it grows while that is short, as it is in a local network,
and shrinks to next to nothing where a transfer would hold messages up.
"""

from gateway.links.limits import (
    BLOB_ANSWER_LONG_MS,
    BLOB_ANSWER_SHORT_MS,
    BLOB_WANT_BYTES,
    BLOB_WINDOW_BYTES_MAX,
)


class BlobPace:
    """The window of one link."""

    def __init__(self) -> None:
        self.window = 4 * BLOB_WANT_BYTES

    def answered(self, after_ms: int) -> None:
        """A want was answered in full."""
        if after_ms > BLOB_ANSWER_LONG_MS:
            self.window = max(BLOB_WANT_BYTES, self.window // 2)
        elif after_ms < BLOB_ANSWER_SHORT_MS:
            self.window = min(BLOB_WINDOW_BYTES_MAX, self.window + BLOB_WANT_BYTES)
