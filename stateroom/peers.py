"""The peers of a room and what is sent to all of them."""

from outbox.rates import Meters
from stateroom.exchange import Awareness, Entry, SyncStep1, Update, encode
from stateroom.limits import CONNECTIONS_PER_PEER_MAX
from stateroom.outflow import REPLACED, Closed, Outflow
from stateroom.replica import Origin, merge
from stateroom.tempo import RATES


class Peer:
    """One connection."""

    def __init__(self, name: str, outflow: Outflow, *, read_only: bool) -> None:
        self.name = name
        self.outflow = outflow
        self.meters = Meters(RATES)
        self.read_only = read_only
        self.synced = False
        """Its SyncStep1 was answered: from here on it gets updates."""


class Peers:
    """All connections of a room. Nothing here waits: each peer has its own bounded queue."""

    def __init__(self) -> None:
        self._peers: dict[Peer, None] = {}
        """In the order of their coming."""

    @property
    def names(self) -> list[str]:
        """Who is connected."""
        return sorted(peer.name for peer in self._peers)

    def add(self, peer: Peer) -> None:
        """A connection began. Of one peer there are so many: the oldest makes room for one more."""
        same = [other for other in self._peers if other.name == peer.name]
        if len(same) >= CONNECTIONS_PER_PEER_MAX:
            del self._peers[same[0]]
            same[0].outflow.end(REPLACED)
        self._peers[peer] = None

    def discard(self, peer: Peer) -> None:
        """A connection ended."""
        self._peers.pop(peer, None)

    def fan_out(self, batch: list[tuple[Origin, bytes]]) -> None:
        """Send updates: one frame for all; those who sent a part of it get one without that part."""
        origins = {id(origin) for origin, _ in batch}
        whole = encode(Update(merge([update for _, update in batch])))
        for peer in self._peers:
            if not peer.synced:
                continue
            if id(peer) not in origins:
                peer.outflow.offer(whole)
            elif rest := [update for origin, update in batch if origin is not peer]:
                peer.outflow.offer(encode(Update(merge(rest))))

    def tell(self, entries: tuple[Entry, ...], origin: Peer | None = None) -> None:
        """Pass heartbeats on. Without entries: a sign of life, for clients that take silence for death."""
        frame = encode(Awareness(entries))
        for peer in self._peers:
            if peer is not origin:
                peer.outflow.offer(frame)

    def ask(self, state: bytes) -> None:
        """Ask every peer that may write for what it has and we lack."""
        frame = encode(SyncStep1(state))
        for peer in self._peers:
            if not peer.read_only:
                peer.outflow.offer(frame)

    def end(self, closed: Closed, name: str | None = None) -> None:
        """Close all, or those of one name."""
        for peer in self._peers:
            if name in {None, peer.name}:
                peer.outflow.end(closed)
