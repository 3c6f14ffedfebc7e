"""Bounds of links and of dialling, each with its reason."""

from gateway.wire.limits import BLOB_PIECE_BYTES_MAX

LINK_WINDOW_BYTES = 2 * 1024 * 1024
"""Payload that a peer may send before we have handled it: a full batch; fifty links hold 100 MiB at worst."""

GRANT_AT_BYTES = LINK_WINDOW_BYTES // 4
"""Handled bytes are granted anew in quarters: few frames, and never a writer that waits for the last byte."""

FRAMES_IN_A_ROW = 8
"""Frames of one peer that are handled before everybody else has a turn: a millisecond or two of pages."""

VERSION1_WINDOW_BYTES = 4 * 1024 * 1024
"""Bytes that may be under way to a peer of version 1, which grants no credit."""

OFFERS_MAX = 10_000
"""Streams that one peer may offer: more than any mesh has, and less than a hostile one would need."""

LOOK_EVERY_S = 5.0
"""How often sources are looked at for what only time tells."""

CHANGE_AFTER_MS = 15_000
"""A source that brings nothing for so long although it has more is left, if somebody else has it too."""

STALLED_AFTER_MS = 60_000
"""They have it, we want it and nothing moves: an incident."""

DISTRUST_MS = 10 * 60_000
"""A relay that was caught is tried again after so long: its disk may have been at fault."""

TRIED_AGAIN_MS = 60_000
"""A source that brought nothing is tried again after so long: its writer may have forgotten the rest."""

FLOOR_LOOKS = int((DISTRUST_MS + 2 * 60_000) / 1000 / LOOK_EVERY_S)
"""Below a floor, while somebody may have the rest: until even a relay that was caught was tried again."""

FLOOR_HOPELESS_LOOKS = 12
"""A minute when all who could have it have said that they do not."""

REFUSED_BY_DISK_MS = 5_000
"""A stream that our full disk refused is asked for again so much later, over the same link."""

ASKS_KEPT = OFFERS_MAX
"""Wants that a link remembers, so as to know late entries from forged ones: one for each stream."""

HAVE_EVERY_S = 1.0
"""The growth of streams that a peer does not read here is told at most this often."""

SEEN_EVERY_MS = 1_000
"""How far a peer's outbox was handled is said at most this often: nobody waits for it, and said for each page
it was one of five frames."""

LINK_STARTS_WITHIN_S = 15.0
"""A peer that opened a link and says nothing is let go."""

ROOM_PEERS_MAX = 3
"""State-room sockets that a node dials: any connected shape of nodes converges, and two would do."""

DIRECT_PEERS_MAX = 50
"""Nodes up to which everybody dials everybody: 1,225 links in all; above, seeds carry between the others."""

DEFER_S = 3.0
"""How long the node with the larger name waits for the other one to dial."""

ANSWER_BYTES_MAX = 64 * 1024
"""What a peer may answer to a challenge or a renewal."""

ASK_WITHIN_S = 10.0
"""How long such an answer may take."""

BLOB_PIECE_BYTES = BLOB_PIECE_BYTES_MAX
"""Of a blob, read and sent at once, between two pages of an outbox."""

BLOB_WANT_BYTES = 64 * 1024
"""Asked for at once: what is under way is measured and bounded in these steps."""

BLOB_WINDOW_BYTES_MAX = 1024 * 1024
"""Of blobs under way to one peer at most: it fills a gigabit line over 8 ms."""

BLOB_WANTS_MAX = 256
"""Wants of a peer that wait: the window is full with sixteen of the usual size, and each takes memory."""

BLOB_ANSWER_SHORT_MS = 50
BLOB_ANSWER_LONG_MS = 150
"""A want that takes longer holds messages up for as long: then less is under way."""

BLOB_ALLOWED_MS = 5_000
"""So long a peer that may fetch a blob is not looked at again: it asks some thousand times a second."""

BLOB_NAMINGS_MAX = 1_000
"""Entries that are looked at for one that lets a peer fetch a blob: many name one that goes round."""

BLOB_AGAIN_MS = 5_000
"""Who has no such blob is asked again later: a relay may be fetching it."""

BLOB_STALLED_S = 20.0
"""A peer from which no byte comes for so long is left for another: a dead link is found in that time."""

BLOBS_AT_ONCE = 4
"""Blobs that come in at a time, each over its own link: more share the same disk and line."""

BLOBS_LOOK_EVERY_S = 5.0
"""How often what is missing is looked at for what only time tells."""

BLOBS_MISSING_MAX = 1_000
"""Blobs that are planned for at a time; more follow as these come."""

REVOKED_TOLD_WITHIN_S = 0.5
"""How long a peer whose key was revoked stays connected: its state room hears why in some milliseconds."""
