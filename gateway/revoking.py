"""``gateway node revoke``, and what every node keeps of the revocations that it hears of.

A revocation is signed here, written to the journal, and only then said in the state room. Whoever hears of
one, there or over a link, writes it to its own journal: a room that was lost or put back is told again.
"""

from auth.gatekeeper import Gatekeeper
from auth.keyring import Keyring
from auth.keys import PublicKey, SigningKey
from gateway.api.operator import RevocationAnswer
from gateway.endpoints.errors import Forbidden
from gateway.engine.knocks import KeepRevocation
from gateway.home import Home
from gateway.rooms import Rooms
from gateway.runtime import Runtime
from outbox import base64url
from outbox.chain import Checkpoint
from outbox.errors import NotFound
from outbox.ids import NodeId, Seq, epoch_ordinal
from outbox.reader import JournalReader
from stateroom.bodies import LastPlace, RevocationBody
from stateroom.limits import NEXT_EPOCH_STEP
from stateroom.records import Record
from stateroom.revocations import revocation_body, stands
from stateroom.view import NodeView, RevocationView, View


class Revoker:
    """Revokes keys as the operator of this node says."""

    def __init__(
        self, home: Home, here: NodeId, runtime: Runtime, reader: JournalReader, rooms: Rooms
    ) -> None:
        self._home = home
        self._here = here
        self._runtime = runtime
        self._reader = reader
        self._rooms = rooms

    async def revoke(self, node: NodeId, *, ban: bool, reason: str) -> RevocationAnswer:
        """Put a node out, for ever with its key, and with ``ban`` its name too. Again is fine.

        Raises NotFound, Forbidden (with who may), Denied, Busy and the keyring's errors.
        """
        view = self._runtime.view
        target = view.node(node) or view.revoked(node)
        if target is None:
            raise NotFound(f"{node} is no node of this mesh", hint="list them with: gateway nodes")
        if not isinstance(target, RevocationView) or (ban and not target.ban):
            root = self._right(view, target)
            record = self._rooms.word_of(self._body(view, target, ban=ban, reason=reason), root)
            await self._runtime.ask(keep(self._runtime.req(), record))
            self._rooms.hear((record.text,))
            await self._rooms.state.settled()
        return _answer(node, self._runtime.view.revoked(node))

    def _right(self, view: View, target: NodeView | RevocationView) -> SigningKey | None:
        """The root's key where it has to sign; None where this node may. Raises Forbidden."""
        me = view.node(self._here)
        if target.node == self._here:
            raise Forbidden(
                "a node does not revoke itself", hint=f"to stop it: end its gateway. {_who(view, target)}"
            )
        if isinstance(target, NodeView) and target.role == "seed":
            root = Keyring(self._home.keys).root_key()
            if root is None:
                raise Forbidden(
                    f"{target.node} is a seed: only the root of the mesh may revoke it",
                    hint=_who(view, target),
                )
            return root
        if me is None or me.role != "seed":
            raise Forbidden(f"{self._here} is no seed, and may not revoke a node", hint=_who(view, target))
        return None

    def _body(
        self, view: View, target: NodeView | RevocationView, *, ban: bool, reason: str
    ) -> RevocationBody:
        node = target.node
        last = self._reader.signed_cursor(node) if isinstance(target, NodeView) else target.last
        seen = [word.next_epoch - 1 for word in view.revocations.get(node, ())]
        seen += [epoch_ordinal(last.epoch)] if last is not None else []
        if isinstance(target, NodeView) and target.outbox_epoch is not None:
            seen.append(epoch_ordinal(target.outbox_epoch))
        return RevocationBody(
            node=node,
            public_key=base64url.encode(target.public_key),
            ban=ban,
            last=_place(last) if last is not None and last.seq else None,
            next_epoch=(max(seen, default=0) // NEXT_EPOCH_STEP + 1) * NEXT_EPOCH_STEP,
            reason=reason,
            stands=stands(self._rooms.standing(node)),
        )


class Remembering:
    """Writes every revocation that counts into the journal, once."""

    def __init__(self, runtime: Runtime, rooms: Rooms, gatekeeper: Gatekeeper) -> None:
        self._runtime = runtime
        self._rooms = rooms
        self._kept = {word.record for word in gatekeeper.revocations()}
        self._nodes: object = None

    def see(self, view: View) -> None:
        """The state room changed, and may have lost what the journal knows."""
        if view.nodes is not self._nodes and self._kept:  # who admits whom decides whose words count
            self._nodes = view.nodes
            self._rooms.hear(self._kept)
        for record in self._rooms.revocations() if view.revocations else ():
            body = revocation_body(record)
            key = base64url.decode(body.public_key)
            out = any(word.public_key == key for word in view.revocations.get(NodeId(body.node), ()))
            if out and record.text not in self._kept:
                self._kept.add(record.text)
                self._runtime.tell_now(keep(self._runtime.req(), record))


def keep(req: int, record: Record) -> KeepRevocation:
    """The request that writes it down."""
    body = revocation_body(record)
    return KeepRevocation(
        req=req,
        name=record.key,
        node=NodeId(body.node),
        jkt=PublicKey.from_text(body.public_key).jkt,
        ban=body.ban,
        record=record.text,
    )


def _place(last: Checkpoint) -> LastPlace:
    return LastPlace(epoch=last.epoch, seq=last.seq, hash=last.hash, signature=last.signature)


def _who(view: View, target: NodeView | RevocationView) -> str:
    """Who may sign it."""
    if isinstance(target, NodeView) and target.role == "seed":
        return "run it on the node that founded the mesh: the root's key is there, or where it was moved to"
    seeds = sorted(node for node, found in view.nodes.items() if found.role == "seed" and node != target.node)
    return f"seeds may: run it on {' or '.join(seeds[:3])}" if seeds else "a seed may"


def _answer(node: NodeId, word: RevocationView | None) -> RevocationAnswer:
    assert word is not None, "it was just said"
    return RevocationAnswer(
        node=node,
        key=base64url.encode(word.public_key),
        ban=word.ban,
        by=word.by,
        reason=word.reason,
        last_epoch=word.last.epoch if word.last is not None else None,
        last_seq=word.last.seq if word.last is not None else Seq(0),
    )
