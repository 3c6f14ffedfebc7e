"""Every bound of the engine, with its reason."""

DUE_MAX = 500
"""Timers, or lost attempts, handled in one tick; the rest follow in the next."""

NEAR_TOLD_MAX = 4
"""Senders of one tick that are told which names look like the unknown one that they wrote: looking through
thousands takes milliseconds, and who misspells one name a hundred times needs to hear it once.
"""

TRIM_BATCHES = 64
"""Batches of a copy that one tick lets go of: deleting a thousand rows takes about a millisecond."""

TRIM_EVERY_MS = 60_000
"""How often copies are looked at for what is too old."""

HELD_MAX = 10_000
"""Events that may wait for the room to name their sender's owner: bounded, since
a stranger decides how many come."""

BEHIND_MS_MAX = 60_000
"""An accepted event waits so long for a stream that stands still: by then its link is broken or about to be
replaced, and to wait for what nobody brings would be a stall of ours."""

INCIDENTS_OPEN_MAX = 10_000
"""Open incidents of one kind that tell of the past: more than anybody reads; the oldest go first."""

INCIDENTS_CLOSED_KEPT = 10_000
"""Closed ones of all kinds; those of before go."""

INCIDENTS_AT_ONCE = 1_000
"""Incidents that one tick closes."""

DISMISSED_MAX = 10_000
"""Dead letters that one request takes from the list: more would hold the tick for seconds."""

HANDS_MAX = 4
"""Turns that an agent may have in hand and still be taken for one that works on them one by one: what it
sends meanwhile in their threads answers them. Who holds more is no loop of two."""

BLOB_GRACE_MS = 3_600_000
"""So long a blob that nobody names stays after it came, or was last asked to be kept: its sender has yet to
send the event, which takes seconds, and may be restarted in between."""

BLOBS_DROPPED_MAX = 200
"""Blobs that one tick lets go of; their files go one by one right after it."""

PRIORITY_NORMAL = 2

PACES_MAX = 10_000
"""Pairs of agents, or threads, whose pace is remembered; the quietest are forgotten first."""

LEAD_MS_MAX = 24 * 3_600_000
"""A wall clock that was set back by at most so much is followed by running slower. By more: it was wrong
before, and what is written must not be dated far into the future for weeks."""

ERROR_CHARS_MAX = 500
"""Of an error that an agent or a peer gives: it goes into ACKs, dead letters, incidents and tables."""

EXPIRES_IN_MS_MAX = 366 * 24 * 3600 * 1000
"""The longest life that a sender may ask for: no state without a maximum time."""

CLOCK_ROUNDING_MS = 2
"""By which two measurements of one clock may differ without meaning: both clocks and half the round trip are
cut to whole milliseconds."""

RETAIN_BATCHES_MAX = 500
RETAIN_ENTRIES_MAX = 2_000
"""Forgotten in one tick: some tens of milliseconds, as long as a busy commit."""

CLAIMS_WAIT_MS = 30_000
"""After a start, so long peers that claim to have read more of this outbox than it holds may prove it: a link
comes up within that time, and a liar holds nobody up for longer."""

EPOCHS_BEGUN_MAX = 3
"""Epochs that one process begins because others know more. Each goes above all that was heard of, so an
honest past is used up by then; a copy of this home that runs elsewhere never ends."""

EPOCHS_TOLD_MAX = 32
"""Epochs before a new one of which it says how far they are remembered: a copy that runs is found within
three."""

RECALL_REFS_MAX = 1000
"""Events in one ``recall`` or ``recalled``: some 40 KiB."""

RECALL_AGAIN_MS = 60_000
RECALL_AGAIN_MS_MAX = 3_600_000
"""Between two questions to a node that has read the one before and did not answer: twice as long each time,
so that one that never will, a liar or an old program, is asked a few dozen times in a day."""

ERRAND_ROWS_MAX = 250
"""Rows that one tick looks at for what is too much for one: two milliseconds to read and two to write them,
ten where each is answered for with an event."""

SORTED_PAST = 32
"""Keys of turns for each of these that are only put in order: 0.4 microseconds, and no row."""

LOOKED_PAST = 4
"""Rows of a table for each of these that are only passed: the database does that alone."""

ENDED_UNREAD_AFTER_MS = 30_000
"""How long what a revoked node has said before is waited for until what it was owed ends without it."""

ROOM_AGAIN_MS = 500
"""How often a full disk is asked for room again."""
