"""Every bound of the outbox, with its reason."""

PAYLOAD_BYTES_MAX = 256 * 1024
"""Inline payload; larger content belongs in a blob so that one event never blocks a link for long."""

BLOB_BYTES_MAX = 64 * 1024**3
"""One blob: more than any file that agents have to hand each other, and far below what offsets can count."""

MEDIA_TYPE_MAX = 128
"""Characters of a blob's media type: it is shown in tables and headers."""

BODY_BYTES_MAX = PAYLOAD_BYTES_MAX + 16 * 1024
"""An event's bytes: the payload and a generous envelope. Enforced at publish, so none can poison a link."""

HEADER_BYTES_MAX = 8 * 1024
"""Every header reaches every reader; a header is a handful of ids."""

RECIPIENTS_MAX = 200
"""Agents that one event may name: the longest names fill most of what an envelope has beside its payload."""

DESTINATIONS_MAX = 100
"""Nodes that one event may go to: with the longest names they fill most of a header."""

EXPIRES_IN_MS_DEFAULT = 7 * 24 * 3600 * 1000
"""A week: longer than a laptop's holiday, shorter than for ever."""

HOPS_MAX = 16
"""An answer to an answer … this deep is a loop of agents, not a conversation."""

JSON_DEPTH_MAX = 64
"""Deep nesting exhausts parsers in other languages; real payloads stay far below."""

PAGE_ENTRIES_MAX = 500
"""Entries read from the database at a time: about 1.6 M/s, and a page never holds the loop for long."""

PAGE_BYTES_MAX = 2 * 1024 * 1024
"""Bytes of one page, so that 500 large bodies do not pile up in memory."""

BATCH_BYTES_MAX = 2 * 1024 * 1024
"""Bytes under one checkpoint: a batch travels in one frame, and a frame is held in memory on both sides."""

BATCH_ENTRIES_MAX = 1000
"""Entries one checkpoint may cover: a reader must hold a whole batch to verify it."""

BATCH_ENTRIES = 250
"""Own entries under one checkpoint: who reads them acts on a whole batch in one tick, some ten milliseconds.
Versions before wrote up to the bound."""

NAME_CHARS_MAX = 63
"""A node or agent name: what fits into one DNS label."""

THREAD_ID_MAX = 128
IDEMPOTENCY_KEY_MAX = 128
TYPE_MAX = 128
"""Free-text labels of an event; they are indexed and shown in tables."""

SCHEMA_MAX = 128
"""Characters of a schema's name: a URL or a path with a version, shown in tables."""

TRACEPARENT_MAX = 256
"""Characters of a ``traceparent``: 55 in the version that exists, and room for later ones."""

TRACEPARENTS_REMEMBERED = 1024
"""Lines that were found to be well-formed: those of a conversation come again with each answer."""

SEQ_MAX = (1 << 40) - 1
"""Entries of one epoch: a thousand a second for 34 years. With the epoch's ordinal it is one key."""

BACKOFF_FIRST_MS = 2_000
BACKOFF_CAP_MS = 60_000
ATTEMPTS_MAX = 8
"""Eight attempts, at most 2, 4, 8 … 60 s apart: minutes of a node that answers but cannot take the event. A
node that does not answer burns none."""

FULL_CAP_MS = 600_000
FULL_ATTEMPTS_MAX = 144
"""A full inbox is asked again at most ten minutes apart, for about twelve hours: each time is an entry of the
outbox, and an agent that takes nothing for so long will not take this."""

ACK_TIMEOUT_MS = 10_000
"""``accepted`` takes milliseconds; ten seconds is a link that stumbled."""

WAL_BYTES = 8 * 1024 * 1024
"""Write-ahead log grown ahead at start: a commit that overwrites in place syncs up to three times faster than
one that extends the file. Twice the checkpoint interval, so that it does not grow again."""

WAL_CHECKPOINT_PAGES = 1000
"""4 MiB between checkpoints: stalls of about 5 ms. 4000 pages are faster on average and stall 18 ms."""

BUSY_TIMEOUT_MS = 5_000
"""How long to wait for another connection; readers never block the writer, so only a checkpoint can."""

CACHE_KIB = 16 * 1024
"""Database pages in memory; the hot ones are the ends of a few trees."""

TIMES_REMEMBERED = 4096
"""Times kept in both forms: all events of a batch carry the same few."""

NAMES_REMEMBERED = 1024
"""Names and epochs that were found to be well-formed: an event carries four, and a mesh has some hundred."""

HEADERS_REMEMBERED = 1024
"""Headers in both forms: store, links and reader look at the same one within a tick or two. 8 MiB at most."""

ROWS_RECENT_MAX = 4096
"""Rows of one table kept after their commit: an event is touched again within some ticks, or after hours."""

RECENT_BYTES_MAX = 32 * 1024 * 1024
"""What bodies of turns may take that are kept so: rows with large ones are forgotten sooner."""

ROWS_BUFFERED_MAX = 4096
"""Changed rows of one table held back until the commit: a few ticks' worth, some MiB with usual bodies."""

UNANSWERED_MAX = 4096
"""Rows of a node among which the oldest is looked for, once for so many questions: a few milliseconds."""

NEVER_MS = 1 << 62
"""Later than any time."""

ROWS_BEHIND_MAX = 2048
"""Rows whose new form stands among the changes and not in their tables: some MiB with usual bodies, and a
tick that writes them all takes about 10 ms longer."""

CHANGES_BYTES_MAX = 4 * 1024 * 1024
"""The same in bytes of changes, since bodies may be large: half of the write-ahead log."""

KEPT_MS = 30 * 24 * 3600 * 1000
KEPT_ENTRIES = 5_000_000
KEPT_BYTES = 4 * 1024**3
"""What an outbox keeps by default: a month, or what fits on a small machine's disk."""

READER_LEASE_MS = 7 * 24 * 3600 * 1000
"""So long unread entries wait for a node that does not show itself: a laptop's week off."""

QUARANTINED_KEPT = 10_000
QUARANTINED_BYTES_KEPT = 64 * 1024 * 1024
"""Entries that are no events and are kept for an operator, and what they may take; the oldest go first. So
many of the largest would be gigabytes, which an admitted node that lies could send in minutes."""

LOCK_WAIT_S = 10.0
"""How long a start waits for the lock of a home whose holder has died: what it left behind is in its last
transaction, on a disk that may be slow."""

LOCK_LOOK_EVERY_S = 0.02
"""Between two looks at such a lock."""

BLOB_PIECE_BYTES = 1024 * 1024
"""Of a blob's file, read and hashed at a time."""

DOUBLINGS_MAX = 40
"""Far above any cap; keeps a huge attempt number from making a huge integer."""
