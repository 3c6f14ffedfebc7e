"""What we read over one link: every want has a number, and entries name the want that they follow.

Pages of one want go on where the one before ended. An old page in place of a new one would leave its reader
waiting for ever: whoever sent it thinks that we have the new one.
"""

from gateway.links.limits import ASKS_KEPT
from gateway.wire.frames import Filter, Want
from outbox.chain import Checkpoint, Head
from outbox.errors import BadFrame, BrokenChain
from outbox.ids import Epoch, NodeId, epoch_ordinal
from stateroom.view import View


class Asking:
    """The streams that are read, by the number of the want that counts."""

    def __init__(self) -> None:
        self._current: dict[NodeId, int] = {}
        self._asked: dict[int, NodeId] = {}
        """What each want was about, the last ones."""
        self._last = 0
        self._reached: dict[NodeId, tuple[int, int]] = {}
        """Up to where pages of the want that counts have come: ordinal of the epoch, seq."""

    def read(self, stream: NodeId, cursor: Head | None, which: Filter) -> Want:
        """Ask for a stream, from where it stands."""
        self._last += 1
        self._current[stream] = self._last
        self._asked[self._last] = stream
        self._reached[stream] = (0, 0) if cursor is None else (epoch_ordinal(cursor.epoch), cursor.seq)
        if len(self._asked) > ASKS_KEPT:
            del self._asked[next(iter(self._asked))]
        if cursor is None:
            return Want(stream, None, 0, which, self._last)
        return Want(stream, cursor.epoch, cursor.seq, which, self._last)

    def leave(self, stream: NodeId) -> Want:
        """Say that a stream is read elsewhere, or later."""
        self._last += 1
        del self._current[stream]
        return Want(stream, None, 0, Filter.NONE, self._last)

    def expects(self, stream: NodeId, ask: int) -> bool:
        """Whether entries follow the want that counts; late ones do not. Raises BadFrame for forged ones."""
        if self._asked.get(ask) != stream:
            raise BadFrame(f"entries of {stream} follow want {ask}, which did not ask for them")
        return self._current.get(stream) == ask

    def goes_on(self, stream: NodeId, reached: Checkpoint) -> None:
        """A page of the want that counts ends here. Raises BrokenChain when an earlier one went as far."""
        place = (epoch_ordinal(reached.epoch), reached.seq)
        if place <= self._reached[stream]:
            raise BrokenChain(f"a page up to {reached.epoch}/{reached.seq} came again")
        self._reached[stream] = place


def is_over(view: View, stream: NodeId, epoch: Epoch, version: int) -> bool:
    """Whether an epoch is read no further: it was written twice, or with a key that its node had before.
    Pages of version 1 cannot prove that, so over such a link no epoch is read on that its writer has left.
    """
    known = view.node(stream)
    left = known is not None and known.outbox_epoch not in {None, epoch}
    former = known is not None and view.ended(stream, epoch) is not None
    return view.forked(stream, epoch) or former or (version == 1 and left)
