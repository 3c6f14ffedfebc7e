"""Who may read what: a node what its header names it in (or ``*``), and all of it who was admitted for that.

That is a seed, and what the mesh has invited as a mirror or a collector; nobody's own word counts. Who may
fetch a blob follows: whoever may read an event that names it. To know its hash is not enough; everybody else
is answered the same whether or not the blob is here.
"""

from collections.abc import Callable, Iterable

from gateway.links.errors import PeerRevoked, ReaderRefused, VersionRefused
from gateway.wire.frames import Filter, Want
from outbox.envelope import decode_header
from outbox.errors import InvalidEvent
from outbox.ids import NodeId
from outbox.readership import names
from outbox.records import Naming
from stateroom.view import View

WHOLE = 1
"""The version of the frames in which all bodies travel: only by them can the chain be followed."""


def check_filter(want: Want, peer: NodeId, view: View) -> None:
    """Raises ReaderRefused for a peer that wants bodies which are not for it."""
    if want.filter is Filter.ALL and not view.reads_all(peer):
        raise ReaderRefused(
            f"{peer} wants what is for others",
            hint=f"for a collector or a mirror: gateway invite {peer} --reads-all, and join again",
        )


def check_peer(peer: NodeId, view: View) -> None:
    """Raises PeerRevoked for a node that was put out."""
    if view.revoked(peer) is not None:
        raise PeerRevoked(f"the key of {peer} was revoked", hint="ask the operator of a seed why")


def check_version(version: int, peer: NodeId, view: View) -> None:
    """Raises VersionRefused when nothing can be left out of what a peer is given, and it may not have all."""
    if version == WHOLE and not view.reads_all(peer):
        raise VersionRefused(
            f"{peer} speaks version {WHOLE} of the frames, in which it would be given what is for others",
            hint=f"update {peer}, or let it read all: gateway invite {peer} --reads-all, and join again",
        )


def may_fetch(peer: NodeId, namings: Iterable[Naming], mirrors: Callable[[NodeId], bool]) -> bool:
    """Whether any of the entries that name a blob is for a peer to read."""
    return any(mirrors(naming.source) or _names(naming.header, peer) for naming in namings)


def _names(header: bytes, peer: NodeId) -> bool:
    try:
        return names(decode_header(header), peer)
    except InvalidEvent:
        return False
