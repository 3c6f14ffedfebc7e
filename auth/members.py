"""Members: which node name belongs to which key, by which invite."""

from collections.abc import Callable

import msgspec

from auth.invites import InviteId
from auth.keys import Jkt, PublicKey
from outbox.ids import NodeId

KeyOf = Callable[[NodeId], PublicKey | None]
"""The key that the admission records of the whole mesh give a node name; None for a name nobody has."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A node that this gateway admitted. Its admission record is derived from this row, at any start."""

    node: NodeId
    key: str
    """The public key in base64url."""
    jkt: Jkt
    rooms: tuple[str, ...]
    """What renewal may open here."""
    invite: InviteId
    counter: int
    """Counter of the admission record: rises when the node joins again."""
    admitted_at_ms: int


class RevokedKey(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody's word that a key belongs to the mesh no more, as this gateway has learnt it."""

    name: str
    """Under which it stands in the state room."""
    node: NodeId
    jkt: Jkt
    ban: bool
    """The name may not come back either."""
    record: str
    """The signed word itself: said again where the state room has lost it."""


def nobody(_node: NodeId) -> PublicKey | None:
    """The answer of a mesh without any other seed."""
    return None
