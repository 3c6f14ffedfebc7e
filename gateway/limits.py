"""Bounds of the gateway's shells, each with its reason."""

QUEUE_INPUTS_MAX = 10_000
"""Inputs of this machine that may wait for the next tick; beyond it callers get 429 and sockets wait."""

TICK_INPUTS_MAX = 256
"""Inputs of one tick: the loop is held for about ten milliseconds, and an fsync is shared by as many."""

BROUGHT_TICK_MAX = 256
BROUGHT_BYTES_OF_ONE = 4096
"""Entries of peers' pages in one tick, and the bytes that weigh as much as one more: some 20 ms, for which a
request waits, or one page if that is larger. Few commits are spared above that."""

BROUGHT_PAGE_COST = 4
"""What a page takes beside its entries."""

LINE_INPUTS_MAX = 256
"""Pages of one peer that wait for a tick; beyond it its link is not read. Credit bounds their bytes."""

COMPARED_MAX = 12
"""Names that are compared with one that nobody knows: about a millisecond."""

GATHER_QUIET_TURNS = 3
"""Turns of the loop in which nothing came, before a tick: what is read in one is an input two turns later.
A turn takes some microseconds, a commit at least a hundred."""

GATHER_WITHIN_MS = 5
"""After a commit: what came while it held the loop is in by then."""

GATHER_TURNS_MAX = 50
"""A loop that brings something in every turn is not waited for longer."""

LINGER_MS = 10
"""How long a page of ACKs waits for a tick that something else asks for: about what a round trip over two
gateways takes on a disk with syncs of 2 ms. A sender sees by so much later that its message was accepted."""

GC_NEW_OBJECTS = 20_000
GC_GENERATIONS = 50
"""Objects that are made between two collections of the youngest, and how many of those make one of the next
generation: records hold no cycles, and looking for some took a tenth of the time of a busy gateway."""

FEED_BYTES_MAX = 8 * 1024 * 1024
"""Recent own pages kept in memory for links that are up to date; others read the journal."""

COPY_FEED_BYTES_MAX = 64 * 1024
"""The same for each copied outbox: there may be a thousand."""

PING_EVERY_S = 10.0
"""Half-open links are found in twice this time."""

BODY_BYTES_MAX = 320 * 1024
"""A local HTTP request: one payload and its envelope, read no further."""

STORAGE_PAUSE_S = 0.5
"""After a refused commit, before the next try: a full disk is not asked in a hot loop."""

LOG_BYTES_MAX = 10 * 1024 * 1024
LOG_FILES_MAX = 5
"""The log file and five older ones: 60 MiB at most, days of a busy gateway."""

STRANGERS_LINES = 20
STRANGERS_WINDOW_S = 60.0
"""Lines of one kind that strangers may cause in a minute: enough to see who tries what, a few MB a day."""

LOG_WAITING_BYTES_MAX = 1024 * 1024
"""Lines that a full disk refuses wait in memory: hours of a gateway that can do nothing else either."""

HEARTBEAT_S = 5.0
"""Six heartbeats fit into the time after which a node counts as offline."""

ACTIVITY_EVERY_S = 30.0
"""Who of the agents was active when is told at most this often: all nodes read it, none acts on it."""

CURSORS_EVERY_S = 3.0
"""Cursors are published, passed on and looked at, at most this often: they only ever prove a loss, which
nobody looks for before an acknowledgement is ten seconds late, and are there by then over two nodes between.
A quarter of what a mesh of five does is to look at cursors; half when each hop passed them on at once."""

HEAD_EVERY_S = 300.0
"""The own head in the ``nodes`` record, where it moved; each write leaves a few bytes in the document's
history. As often the agents of the room are held against the journal's."""

OFFERED_WITHIN_S = 30.0
"""What a peer says that it has comes within that, or a collector reads it elsewhere: a page takes seconds on
the slowest link."""

EARLIER_WITHIN_S = 5.0
"""How long a collector waits for what a peer may have of an earlier epoch: none is also no answer."""

JOIN_WITHIN_S = 30.0
"""How long a newcomer waits for its first copy of the state room."""

RETAIN_EVERY_S = 60.0
"""Between two looks at what may be forgotten: retention is counted in days."""

RETAIN_AGAIN_S = 0.1
"""After a look that left something to do: ten bounded moves a second outrun any writer."""

BLOBS_BYTES_MAX = 16 * 1024**3
BLOBS_MIRRORED_BYTES_MAX = 4 * 1024**3
"""What blobs may take by default: a fraction of a laptop's disk; and how full it may be before nothing more
is fetched that only copies name."""

WRITER_ENDS_WITHIN_S = 10.0
"""How long a gateway that stops waits for the process of its journal, which may be in a commit."""

WRITER_OPENS_WITHIN_S = 600.0
"""How long a start waits for that process to open the journal: a migration copies whole tables."""

BEATS_AHEAD_MS = 3_600_000
"""How far ahead of the heartbeat counters their bound is written: one write an hour, and no more than an hour
by which a restart may run ahead of the clock."""

PROBLEM_CODE_CHARS_MAX = 80
PROBLEM_TEXT_CHARS_MAX = 300
"""Kept of what somebody else says: a code is a word, a text is a line in a terminal or a log."""
