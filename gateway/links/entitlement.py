"""Who may fetch a blob: whoever may read an event that names it. To know its hash is not enough.

A node may read what its name stands in (or ``*``). A seed that keeps a copy of an outbox may read all of it.
Everybody else is answered the same whether or not the blob is here.
"""

from collections.abc import Callable, Iterable

from outbox.envelope import decode_header
from outbox.errors import InvalidEvent
from outbox.ids import NodeId
from outbox.readership import names
from outbox.records import Naming


def may_fetch(peer: NodeId, namings: Iterable[Naming], mirrors: Callable[[NodeId], bool]) -> bool:
    """Whether any of the entries that name a blob is for a peer to read."""
    return any(mirrors(naming.source) or _names(naming.header, peer) for naming in namings)


def _names(header: bytes, peer: NodeId) -> bool:
    try:
        return names(decode_header(header), peer)
    except InvalidEvent:
        return False
