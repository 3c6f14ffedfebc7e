"""Whom a node dials: everybody in a small mesh, the seeds in a large one.

Addresses come from validly signed records only. A loopback address means this machine, so it is dialled only
in a mesh that lives on this machine.
"""

from dataclasses import dataclass

from auth.keys import PublicKey, readable_key
from gateway.links.limits import DIRECT_PEERS_MAX, ROOM_PEERS_MAX
from gateway.links.reach import Issuer, is_local
from outbox.ids import NodeId
from stateroom.limits import BACKOFF_CAP_S, BACKOFF_FIRST_S
from stateroom.view import NodeView, View


@dataclass(frozen=True, slots=True)
class Contact:
    """A peer that can be dialled."""

    node: NodeId
    url: str
    key: PublicKey


def contacts(view: View, own: NodeId, issuer: Issuer | None, *, loopback: bool) -> list[Contact]:
    """Peers to dial: seeds first, then by name; the issuer's address is known without the room.

    In a mesh of many only its seeds are dialled, which carry everything; without one that can be dialled the
    first few others are.
    """
    peers = sorted(view.peers(own), key=lambda peer: (peer.role != "seed", peer.node))
    found = [contact for peer in peers if (contact := _contact(peer, loopback=loopback))]
    if len(peers) > DIRECT_PEERS_MAX:
        seeds = {peer.node for peer in peers if peer.role == "seed"}
        found = [contact for contact in found if contact.node in seeds] or found[:ROOM_PEERS_MAX]
    out = issuer is None or view.revoked(issuer.node) is not None
    if issuer is not None and not out and all(contact.node != issuer.node for contact in found):
        found.insert(0, Contact(issuer.node, issuer.url, PublicKey.from_text(issuer.key)))
    return found


def first_wait_s(nodes: int) -> float:
    """Below what the first wait after a lost session is drawn in a mesh of so many nodes.

    Where only seeds are dialled, all others dial the same ones: whatever their number, about as many a second
    come back to a seed that was away for a moment as from a mesh in which everybody dials everybody.
    """
    return min(BACKOFF_CAP_S, BACKOFF_FIRST_S * max(1.0, nodes / DIRECT_PEERS_MAX))


def _contact(peer: NodeView, *, loopback: bool) -> Contact | None:
    key = readable_key(peer.public_key)
    url = next((url for url in peer.endpoints if loopback or not is_local(url)), None)
    return Contact(peer.node, url, key) if key is not None and url is not None else None
