"""The keys of members, as the state room knows them now; each is checked once."""

from collections.abc import Callable

from auth.keys import PublicKey, readable_key
from outbox.chain import Verify
from outbox.ids import NodeId
from stateroom.view import View


class MemberKeys:
    """Implements ``KeyOf`` over the view of the moment."""

    def __init__(self, view: Callable[[], View]) -> None:
        self._view = view
        self._checked: dict[NodeId, tuple[bytes, PublicKey | None]] = {}

    def __call__(self, node: NodeId, /) -> Verify | None:
        """How to verify what a node signed; None for one that never was admitted.

        With the key of a node that was put out too: what it had written before still comes.
        """
        view = self._view()
        found = view.node(node) or view.revoked(node)
        if found is None:
            return None
        known = self._checked.get(node)
        if known is None or known[0] != found.public_key:
            known = self._checked[node] = (found.public_key, readable_key(found.public_key))
        return known[1].verify if known[1] is not None else None
