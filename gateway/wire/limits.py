"""Every bound of a link's frames, with its reason."""

from outbox.limits import BATCH_ENTRIES_MAX

ENTRIES_MAX = BATCH_ENTRIES_MAX
"""Entries of one frame: a whole batch must fit, since its checkpoint is what vouches for it."""

PAYLOAD_BYTES_MAX = 8 * 1024 * 1024
"""Headers and bodies of one frame: four pages of the journal. A larger batch could not travel."""

HEADER_BYTES_MAX = 64 * 1024
"""The JSON header: 1000 pairs of sizes take about 16 KiB, a checkpoint half a KiB."""

FRAME_BYTES_MAX = 4 + HEADER_BYTES_MAX + PAYLOAD_BYTES_MAX
"""One WebSocket message; a link sets its socket's own limit to this, so that more is never buffered."""

VERSIONS_MAX = 16
"""Versions that a ``hello`` may offer; a peer speaks a few at most."""

TEXT_MAX = 500
"""Characters of a ``bye``: they go to a log and to an operator's screen."""

SAFE_INTEGER_MAX = 2**53 - 1
"""Times and positions: what every JSON reader keeps exact; 285 years at a million entries a second."""

HAVE_STREAMS_MAX = 200
"""Streams of one ``have``: about 50 KiB with the longest names; longer lists take several frames."""

BLOB_PIECE_BYTES_MAX = 64 * 1024
"""Bytes of a blob in one frame: what a message may have to wait for, half a millisecond of a gigabit line."""

CREDIT_BYTES_MAX = 64 * 1024 * 1024
"""One grant of credit: far above what any receiver lets wait."""

REVOCATIONS_MAX = 1000
REVOCATION_CHARS_MAX = 16 * 1024
HELLO_CHARS_MAX = 48 * 1024
"""Words about revoked keys in one ``hello``: most are half a KiB, and the header must hold all of them. What
does not fit comes with the state room."""
