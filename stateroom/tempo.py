"""How fast the messages of one connection are handled.

Whoever passes on what a whole mesh says never comes near these rates. Who sends more is read more slowly, so
that a room has time for its other peers, and they do not have to read all of it too.
"""

from collections.abc import Mapping

from outbox.rates import Rate
from stateroom.exchange import Awareness, Message, QueryAwareness, SyncStep1, SyncStep2, Update

_QUESTIONS = Rate(30, 1)
"""Each may be answered with the whole document. A peer asks when it comes, once a minute, and when it has
begun a new document."""

_UPDATES = Rate(1_000, 200)
"""What is written within a window of 15 ms is one update."""

_BYTES_OF_ONE = 2048
"""For so many an update counts as one more: to look at a megabyte takes a third of a second. The room of ten
thousand agents is read at once, and what follows it three seconds later."""

_STATE_BYTES_OF_ONE = 64 * 1024
"""The same for the state vector of a question: the longest may be sent once in half a minute."""

_BEATS = Rate(2_000, 500)
"""The heartbeats of a thousand nodes, each passed on by itself, are 200 a second."""

RATES: Mapping[type[Message], Rate] = {
    SyncStep1: _QUESTIONS,
    QueryAwareness: _QUESTIONS,
    SyncStep2: _UPDATES,
    Update: _UPDATES,
    Awareness: _BEATS,
}


def weight(message: Message) -> int:
    """As how many of its kind a message counts."""
    match message:
        case SyncStep2(update) | Update(update):
            return 1 + len(update) // _BYTES_OF_ONE
        case SyncStep1(state):
            return 1 + len(state) // _STATE_BYTES_OF_ONE
        case _:
            return 1
