"""What can be read from this node: its own outbox and copies of others, from memory when it is recent."""

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from msgspec.structs import replace

from gateway.copies import Copies
from gateway.engine.revoked import left_of
from gateway.feed import Feed
from gateway.wire.frames import Stock
from outbox.chain import Checkpoint, Head, Page
from outbox.errors import CursorBelowFloor
from outbox.ids import Epoch, NodeId, Seq, epoch_ordinal
from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX
from stateroom.view import View


class Committed(Protocol):
    """What is committed in the journal, as links ask for it."""

    def cursor(self, source: NodeId) -> Head | None:
        """How far another node's outbox was handled."""
        ...

    def cursors(self) -> dict[NodeId, Head]:
        """All of them."""
        ...

    def floor(self) -> Checkpoint | None:
        """Up to where the own outbox was forgotten."""
        ...

    def signed_cursor(self, source: NodeId) -> Checkpoint | None:
        """The checkpoint at the cursor in another node's outbox."""
        ...

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """What follows in the own outbox. Raises CursorError branches."""
        ...

    def read_copy(self, source: NodeId, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """What follows in a copy of another outbox. Raises CursorError branches."""
        ...


class Shelf:
    """Pages and heads of every stream that this node can bring."""

    def __init__(
        self, own: NodeId, feed: Feed, copies: Copies, reader: Committed, view: Callable[[], View]
    ) -> None:
        self._own = own
        self._feed = feed
        self._copies = copies
        self._reader = reader
        self._view = view

    def stocks(self, *, copies: bool) -> list[Stock]:
        """The own outbox, and with ``copies`` everything else."""
        nodes = (self._own, *(self._copies.nodes() if copies else ()))
        return [stock for node in nodes if (stock := self.stock(node)) is not None]

    def vouch(self, writer: NodeId) -> list[Stock]:
        """How far we know the outbox of whoever is at the other end, by its own signature; nothing to
        read."""
        known = self._reader.signed_cursor(writer)
        if known is None or self._view().ended(writer, known.epoch) is not None:
            return []  # or it was read under another key than the writer has now
        return [Stock(writer, known.epoch, 1, known.seq, known.hash, False, known.signature)]

    def stock(self, stream: NodeId) -> Stock | None:
        """One stream, if it is here."""
        if stream == self._own:
            head, floor = self._feed.head, self._reader.floor()
            below = floor.seq if floor is not None and floor.epoch == head.epoch else 0
            return Stock(stream, head.epoch, below + 1, head.seq, head.hash)
        copy = self._copies.get(stream)
        if copy is None:
            return None
        word = self._view().ended(stream, copy.epoch)
        if word is not None and self._view().node(stream) is not None:
            return None  # its writer has another key by now, and begins anew
        whole = Stock(stream, copy.epoch, copy.first, copy.last, copy.hash, signature=copy.signature)
        return whole if word is None else _left(whole, word.last)

    def page(self, stream: NodeId, epoch: Epoch | None, after: Seq) -> Page | None:
        """What follows a position, or with no epoch the beginning of the current one; None at the end.

        Raises CursorError branches; CursorBelowFloor also for the beginning of what does not begin there now.
        """
        if stream != self._own:
            return self._copied(stream, epoch, after)
        if not self._feed.is_open:
            return None
        head = self._feed.head
        if epoch in {None, head.epoch}:
            if after == head.seq:
                return None
            recent = self._feed.after(after)
            if recent is not None:
                return recent
        at, floor = Head(epoch or head.epoch, after, b""), self._reader.floor()
        if floor is not None and _order(at) < _order(floor.head):
            raise CursorBelowFloor(f"the outbox is forgotten up to {floor.seq}", hint="update this gateway")
        return self._reader.read(at, PAGE_ENTRIES_MAX, PAGE_BYTES_MAX)

    def floor(self) -> Checkpoint | None:
        """Where the own outbox begins now."""
        return self._reader.floor()

    def check(self, stream: NodeId, epoch: Epoch | None, after: Seq) -> None:
        """Raises CursorError branches for a position in the own outbox that cannot be; copies may change."""
        if stream != self._own:
            return
        with suppress(CursorBelowFloor):  # it will be told where the outbox begins
            self._reader.read(Head(epoch or self._feed.head.epoch, after, b""), 1, 1)

    def _copied(self, stream: NodeId, epoch: Epoch | None, after: Seq) -> Page | None:
        page = self._whole(stream, epoch, after)
        return page and left_of(self._view(), stream, page)

    def _whole(self, stream: NodeId, epoch: Epoch | None, after: Seq) -> Page | None:
        copy = self._copies.get(stream)
        if copy is None:
            return None
        if epoch in {None, copy.epoch}:
            if after == copy.last:
                return None
            recent = self._copies.after(stream, after)
            if recent is not None:
                return recent
        at = Head(epoch or copy.epoch, after, b"")
        return self._reader.read_copy(stream, at, PAGE_ENTRIES_MAX, PAGE_BYTES_MAX)


def _left(stock: Stock, last: Checkpoint | None) -> Stock | None:
    """What of a copy may be offered; None when nothing of it is left."""
    if last is None:
        return None
    if stock.epoch != last.epoch:
        return stock if epoch_ordinal(stock.epoch) < epoch_ordinal(last.epoch) else None
    if stock.last < last.seq:
        return stock
    if stock.last == last.seq:
        return stock if stock.hash == last.hash else None
    if stock.first > last.seq + 1:
        return None
    return replace(stock, last=last.seq, hash=last.hash, signature=last.signature)


def _order(head: Head) -> tuple[int, int]:
    return epoch_ordinal(head.epoch), head.seq
