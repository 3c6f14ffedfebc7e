"""What a peer reads from us over one link, and whose turn it is: streams take turns, page by page."""

from collections import OrderedDict
from typing import NamedTuple

from gateway.wire.frames import Filter, Want
from outbox.errors import BadFrame
from outbox.ids import Epoch, NodeId, Seq


class Reading(NamedTuple):
    """Where the peer stands in one stream."""

    epoch: Epoch | None
    after: Seq
    filter: Filter
    ask: int


class Serving:
    """The wants of one peer."""

    def __init__(self) -> None:
        self._readings: dict[NodeId, Reading] = {}
        self._ready: OrderedDict[NodeId, None] = OrderedDict()
        self._last_ask = 0

    def want(self, want: Want) -> None:
        """The peer wants a stream from there on, or no longer. Raises BadFrame for an old number."""
        if want.ask <= self._last_ask:
            raise BadFrame(f"want {want.ask} comes after want {self._last_ask}")
        self._last_ask = want.ask
        if want.filter is Filter.NONE:
            self.drop(want.node)
        else:
            self._readings[want.node] = Reading(want.epoch, Seq(want.after), want.filter, want.ask)
            self._ready[want.node] = None

    def reads_all(self, stream: NodeId) -> bool:
        """Whether the peer reads a whole stream, with all its bodies."""
        reading = self._readings.get(stream)
        return reading is not None and reading.filter is Filter.ALL

    def drop(self, stream: NodeId) -> None:
        """Serve it no longer."""
        self._readings.pop(stream, None)
        self._ready.pop(stream, None)

    def grown(self, stream: NodeId) -> bool:
        """There is more of a stream; whether the peer wants it."""
        if stream not in self._readings:
            return False
        self._ready[stream] = None
        return True

    def next(self) -> tuple[NodeId, Reading] | None:
        """The stream whose turn it is; it goes to the end of the queue."""
        if not self._ready:
            return None
        stream = next(iter(self._ready))
        self._ready.move_to_end(stream)
        return stream, self._readings[stream]

    def sent(self, stream: NodeId, epoch: Epoch, seq: Seq) -> None:
        """A page up to here is on its way."""
        self._readings[stream] = self._readings[stream]._replace(epoch=epoch, after=seq)

    def idle(self, stream: NodeId) -> bool:
        """There is no more of it now; whether another stream has its turn."""
        self._ready.pop(stream, None)
        return bool(self._ready)
