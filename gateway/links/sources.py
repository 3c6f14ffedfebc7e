"""Which link each stream is read from: one at a time, the writer's own where there is one.

A link offers streams (``have``). A stream is read from one link until that ends, is found lying, or brings
nothing for a while although there is more; then another one that offers it takes over. What two links brought
both is handled once: the cursor tells. A writer that has forgotten what follows our place is no source of it.

Times are milliseconds of the monotonic clock.
"""

from collections.abc import Iterable
from typing import NamedTuple

from gateway.links.errors import TooManyStreams
from gateway.links.floors import Floors
from gateway.links.limits import CHANGE_AFTER_MS, DISTRUST_MS, OFFERS_MAX, STALLED_AFTER_MS, TRIED_AGAIN_MS
from gateway.wire.frames import Stock
from outbox.chain import Checkpoint, Head
from outbox.ids import NodeId, epoch_ordinal


class Command(NamedTuple):
    """What a link has to do."""

    link: int
    stream: NodeId
    read: bool
    """False: leave it."""


class Notice(NamedTuple):
    """A stream that stands still although there is more of it, or that no longer does."""

    stream: NodeId
    peer: NodeId
    stalled: bool


class _Link(NamedTuple):
    peer: NodeId
    offers: dict[NodeId, Stock]


class Sources:
    """The choice for all streams of one node."""

    def __init__(self, own: NodeId, cursors: dict[NodeId, Head]) -> None:
        self._own = own
        self._cursors = dict(cursors)
        self._members: frozenset[NodeId] = frozenset()
        self._dialable: frozenset[NodeId] = frozenset()
        self._links: dict[int, _Link] = {}
        self._current: dict[NodeId, int] = {}
        self._shunned: dict[tuple[int, NodeId], int] = {}
        """Links that one stream is not read from, until when."""
        self._liars: dict[NodeId, int] = {}
        """Peers that no stream but their own is read from, until when."""
        self._behind_since: dict[NodeId, int] = {}
        self._stalled: dict[NodeId, NodeId] = {}
        self._asked_at: dict[NodeId, int] = {}
        self._notices: list[Notice] = []
        self._floors = Floors()
        self._given_up: list[Checkpoint] = []
        self._ends: dict[NodeId, Head | None] = {}
        """Where outboxes end for good, of nodes that were put out."""
        self._dirty: set[NodeId] = set()

    # --- what happens

    def members(self, nodes: frozenset[NodeId], dialable: frozenset[NodeId] = frozenset()) -> None:
        """Whose streams can be verified, and who of them can be dialled: a link may come up yet."""
        self._dialable = dialable
        self._dirty |= nodes ^ self._members
        self._members = nodes

    def ended(self, ends: dict[NodeId, Head | None]) -> None:
        """Nothing of these outboxes is read beyond there; None: nothing at all."""
        known = self._ends.keys() | ends.keys()
        self._dirty |= {node for node in known if self._ends.get(node, ...) != ends.get(node, ...)}
        self._ends = ends

    def opened(self, link: int, peer: NodeId) -> None:
        """A link is up; its peer's own outbox can be read over it."""
        self._links[link] = _Link(peer, {})
        self._dirty.add(peer)

    def closed(self, link: int) -> None:
        """It is gone."""
        gone = self._links.pop(link, None)
        if gone is not None:
            self._dirty |= {gone.peer, *gone.offers}
            self._shunned = {key: until for key, until in self._shunned.items() if key[0] != link}

    def offers(self, link: int, stocks: Iterable[Stock], now_ms: int) -> None:
        """What the peer of a link has, or has more of. Raises TooManyStreams."""
        offers = self._links[link].offers
        for stock in stocks:
            offers[stock.node] = stock
            self._dirty.add(stock.node)
            self._note_behind(stock.node, now_ms)
        if len(offers) > OFFERS_MAX:
            raise TooManyStreams(f"more than {OFFERS_MAX} streams are offered")

    def moved(self, stream: NodeId, head: Head, now_ms: int) -> None:
        """A stream was read up to here."""
        if self._floors.below(stream, self._cursors.get(stream)):
            self._dirty.add(stream)
            self._floors.came(stream)
        self._cursors[stream] = head
        if stream not in self._current:
            self._dirty.add(stream)  # by its writer's floor: a copy that begins there can be followed now
            self._note_behind(stream, now_ms)
        if stream in self._behind_since:
            self._flows(stream)
            self._note_behind(stream, now_ms)

    def forgotten(self, floor: Checkpoint) -> bool:
        """A writer has forgotten everything up to here; whether who reads it has begun below."""
        if self._floors.told(floor):
            self._dirty.add(floor.node)
        return self._floors.below(floor.node, self._cursors.get(floor.node))

    def refused_here(self, link: int, stream: NodeId, until_ms: int) -> None:
        """What a link brought was not taken, and nobody but this node is at fault."""
        self._floors.came(stream)
        self.shun(link, stream, until_ms)

    def shun(self, link: int, stream: NodeId, until_ms: int) -> None:
        """Do not read a stream from a link for a while."""
        self._shunned[link, stream] = until_ms
        self._dirty.add(stream)

    def distrust(self, peer: NodeId, now_ms: int) -> None:
        """A peer was caught: for a while nothing is read from it but its own outbox."""
        self._liars[peer] = now_ms + DISTRUST_MS
        for link in self._links.values():
            if link.peer == peer:
                self._dirty |= set(link.offers)

    # --- what follows

    def decide(self, now_ms: int) -> list[Command]:
        """The changes that are due."""
        commands = []
        for stream in sorted(self._dirty):
            current, best = self._current.get(stream), self._best(stream, now_ms)
            if current == best:
                continue
            if current in self._links:
                commands.append(Command(current, stream, read=False))
            if best is None:
                del self._current[stream]
            else:
                self._current[stream] = best
                self._asked_at[stream] = now_ms
                commands.append(Command(best, stream, read=True))
            if not self._ahead(stream):
                self._flows(stream)
        self._dirty.clear()
        return commands

    def look(self, now_ms: int) -> list[Command]:
        """What time has made due: sources that bring nothing, links and peers to be tried again."""
        over = [key for key, until in self._shunned.items() if until <= now_ms]
        for key in over:
            del self._shunned[key]
            self._dirty.add(key[1])
        for peer in [peer for peer, until in self._liars.items() if until <= now_ms]:
            del self._liars[peer]
            for link in self._links.values():
                self._dirty |= set(link.offers) if link.peer == peer else set()
        for stream, since_ms in list(self._behind_since.items()):
            self._look_at(stream, now_ms - since_ms, now_ms)
        for stream in self._floors.all_below(self._cursors):
            self._look_below(stream)
        return self.decide(now_ms) + self._ask_again(now_ms)

    def notices(self) -> list[Notice]:
        """Streams that began or ceased to stand still since the last call."""
        notices, self._notices = self._notices, []
        return notices

    def given_up(self) -> list[Checkpoint]:
        """Floors at which reading has to go on, since nobody brings what lies below."""
        floors, self._given_up = self._given_up, []
        return floors

    def copies(self, link: int) -> frozenset[NodeId]:
        """Outboxes that the peer of a link has said it has, with their bodies."""
        offers = self._links[link].offers
        return frozenset(node for node, stock in offers.items() if stock.complete)

    def readable(self, link: int) -> list[Stock]:
        """What a link has offered and reading can go on with."""
        found = self._links[link]
        return [
            stock
            for node, stock in found.offers.items()
            if node != self._own and self._verifiable(node, found) and self._fits(stock, found)
        ]

    def goes_on_later(self, link: int, stream: NodeId) -> bool:
        """Whether a relay has only a later epoch of a stream than the one where it was read so far."""
        found, cursor = self._links[link], self._cursors.get(stream)
        stock = found.offers.get(stream)
        if stock is None or cursor is None or found.peer == stream:
            return False
        return epoch_ordinal(stock.epoch) > epoch_ordinal(cursor.epoch)

    # --- inside

    def _look_at(self, stream: NodeId, waited_ms: int, now_ms: int) -> None:
        ahead = self._ahead(stream)
        if not ahead:
            self._flows(stream)
            return
        current = self._current.get(stream)
        others = [link for link in ahead if link != current and self._usable(link, stream, now_ms)]
        if waited_ms >= CHANGE_AFTER_MS and current is not None and others:
            self.shun(current, stream, now_ms + TRIED_AGAIN_MS)
        if waited_ms >= STALLED_AFTER_MS and stream not in self._stalled:
            peer = self._links[current if current in self._links else ahead[0]].peer
            self._stalled[stream] = peer
            self._notices.append(Notice(stream, peer, stalled=True))

    def _look_below(self, stream: NodeId) -> None:
        """Counts only while somebody is there to read from, be it what comes after the floor."""
        if any(stream == link.peer or stream in link.offers for link in self._links.values()):
            linked = {link.peer for link in self._links.values()}
            hope = {self._links[number].peer for number in self._ahead(stream)} | self._dialable - linked
            floor = self._floors.look(stream, hope=not hope <= {stream, self._own})
            self._given_up += [floor] if floor is not None else []

    def _ask_again(self, now_ms: int) -> list[Command]:
        """A relay that has more and brings nothing may have sent an old page, and wait for us."""
        due = []
        for stream in self._stalled:
            link = self._current.get(stream)
            if link is None or self._links[link].peer == stream:
                continue
            if now_ms - self._asked_at[stream] >= STALLED_AFTER_MS:
                self._asked_at[stream] = now_ms
                due += [Command(link, stream, read=read) for read in (False, True)]
        return due

    def _flows(self, stream: NodeId) -> None:
        self._behind_since.pop(stream, None)
        peer = self._stalled.pop(stream, None)
        if peer is not None:
            self._notices.append(Notice(stream, peer, stalled=False))

    def _note_behind(self, stream: NodeId, now_ms: int) -> None:
        if stream != self._own and self._ahead(stream):
            self._behind_since.setdefault(stream, now_ms)

    def _ahead(self, stream: NodeId) -> list[int]:
        """Links that can bring more of a stream than was read."""
        cursor = self._cursors.get(stream)
        read = 0 if cursor is None else cursor.seq
        if self._is_over(stream):
            return []
        return [
            number
            for number, link in self._links.items()
            if (stock := link.offers.get(stream)) is not None
            and stock.last > read
            and self._fits(stock, link)
        ]

    def _best(self, stream: NodeId, now_ms: int) -> int | None:
        if stream == self._own:
            return None
        usable = [number for number in self._links if self._usable(number, stream, now_ms)]
        direct = [number for number in usable if self._links[number].peer == stream]
        current = self._current.get(stream)
        if direct:
            return direct[-1]
        if current in usable:
            return current
        return max(
            usable, key=lambda number: (self._links[number].offers[stream].last, -number), default=None
        )

    def _usable(self, number: int, stream: NodeId, now_ms: int) -> bool:
        link = self._links[number]
        if self._shunned.get((number, stream), 0) > now_ms or self._is_over(stream):
            return False
        if link.peer == stream:
            return not self._floors.below(stream, self._cursors.get(stream))
        stock = link.offers.get(stream)
        trusted = self._liars.get(link.peer, 0) <= now_ms and self._verifiable(stream, link)
        return trusted and stock is not None and self._fits(stock, link)

    def _is_over(self, stream: NodeId) -> bool:
        """Whether a node was put out and all of it was read that anybody reads."""
        if stream not in self._ends:
            return False
        end, cursor = self._ends[stream], self._cursors.get(stream)
        if end is None:
            return True
        at = (0, 0) if cursor is None else (epoch_ordinal(cursor.epoch), cursor.seq)
        return at >= (epoch_ordinal(end.epoch), end.seq)

    def _verifiable(self, stream: NodeId, link: _Link) -> bool:
        return stream in self._members or stream == link.peer

    def _fits(self, stock: Stock, link: _Link) -> bool:
        """Whether reading can go on there where it stands."""
        if link.peer == stock.node:
            return True
        cursor = self._cursors.get(stock.node)
        if cursor is None:
            return stock.complete and stock.first == 1
        if epoch_ordinal(stock.epoch) > epoch_ordinal(cursor.epoch):
            return stock.complete and stock.first == 1
        same = stock.epoch == cursor.epoch
        return stock.complete and same and stock.first <= cursor.seq + 1 and stock.last >= cursor.seq
