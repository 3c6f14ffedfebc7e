"""The door: invites, tickets and upgrades as the engine asks about them, answered by the gatekeeper.

The ledger writes inside the tick's transaction, so a reservation, a spent ticket or a new member is on disk
before anybody hears of it.
"""

from typing import assert_never

import msgspec

from auth.errors import KeyRevoked, NodeMismatch
from auth.gatekeeper import Gatekeeper
from auth.invites import Invite as InviteRow
from auth.invites import InviteId
from auth.keys import Jkt, PublicKey, readable_key
from auth.limits import ENTROPY_BYTES, INVITE_LIFE_MS_DEFAULT
from auth.members import KeyOf, RevokedKey
from gateway.clock import Clock
from gateway.crashpoint import CrashPoint, crashpoint
from gateway.engine.desk import DoorRequest
from gateway.engine.effects import Admitted, Answer, Invited, RevocationKept, Ticketed
from gateway.engine.inputs import Now
from gateway.engine.knocks import Exchange, Invite, KeepRevocation, Renew, RevokeInvite, Upgrade
from outbox.ids import NodeId
from stateroom.view import View

PIPE_ROOM = "pipe"
STATE_ROOM = "state"
CURSORS_ROOM = "cursors"
ROOMS = (STATE_ROOM, CURSORS_ROOM, PIPE_ROOM)
"""What a ticket can open here: the two documents of the state room, and the link."""
PIPE_ALL = "pipe-all"
"""No door of its own: who was invited with it may read over the link what is for others."""


class Door:
    """Implements the engine's ``Desk``."""

    def __init__(self, gatekeeper: Gatekeeper, clock: Clock) -> None:
        self.gatekeeper = gatekeeper
        self._clock = clock

    def answer(self, item: DoorRequest, now: Now, view: View) -> Answer:
        """Raises AuthError branches; what must be remembered of a refusal is in the transaction."""
        match item:
            case Exchange() | Renew():
                return self._ticket(item, now, _key_of(view))
            case Upgrade():
                return self._upgrade(item, now, _key_of(view))
            case Invite():
                return self._invite(item, now)
            case RevokeInvite():
                invite = self.gatekeeper.revoke_invite(InviteId(item.invite_id), now.wall_ms)
                return _invited(item.req, invite, token="")
            case KeepRevocation():
                revoked = RevokedKey(
                    name=item.name, node=item.node, jkt=Jkt(item.jkt), ban=item.ban, record=item.record
                )
                self.gatekeeper.revoke_node(revoked, now.wall_ms)
                return RevocationKept(item.req)
            case _:
                assert_never(item)

    def _ticket(self, item: Exchange | Renew, now: Now, key_of: KeyOf) -> Ticketed:
        entropy = self._clock.entropy(ENTROPY_BYTES)
        gatekeeper = self.gatekeeper
        step = gatekeeper.exchange if isinstance(item, Exchange) else gatekeeper.renew
        answer = step(item.body, now.wall_ms, entropy, item.client, key_of)
        crashpoint(CrashPoint.EXCHANGE_BEFORE_COMMIT)
        return Ticketed(item.req, msgspec.json.encode(answer))

    def _upgrade(self, item: Upgrade, now: Now, key_of: KeyOf) -> Admitted:
        admission = self.gatekeeper.upgrade(
            item.ticket,
            item.proof,
            path=item.path,
            room=item.room,
            now_ms=now.wall_ms,
            client=item.client,
            key_of=key_of,
        )
        crashpoint(CrashPoint.UPGRADE_BEFORE_COMMIT)
        return Admitted(
            req=item.req,
            node=admission.node,
            room=admission.room,
            public_key=admission.key.raw,
            session_id=admission.session_id,
            new_member=admission.first,
        )

    def _invite(self, item: Invite, now: Now) -> Invited:
        expected_key = Jkt(item.expected_key) if item.expected_key is not None else None
        invite, token = self.gatekeeper.create_invite(
            now.wall_ms,
            self._clock.entropy(ENTROPY_BYTES),
            life_ms=item.ttl_ms or INVITE_LIFE_MS_DEFAULT,
            rooms=(*ROOMS, PIPE_ALL) if item.reads_all else ROOMS,
            expected_node=item.expected_node,
            expected_key=expected_key,
        )
        return _invited(item.req, invite, token.text)


def _invited(req: int, invite: InviteRow, token: str) -> Invited:
    return Invited(req, invite.id, invite.status, invite.expires_at_ms, token)


def _key_of(view: View) -> KeyOf:
    def key_of(node: NodeId) -> PublicKey | None:
        found = view.node(node)
        return readable_key(found.public_key) if found is not None else None

    return key_of


def check_member(view: View, admitted: Admitted) -> None:
    """Raises KeyRevoked when its key was put out, NodeMismatch when the mesh knows it by another key."""
    known = view.node(admitted.node)
    if any(word.public_key == admitted.public_key for word in view.revocations.get(admitted.node, ())):
        raise KeyRevoked(f"this key of {admitted.node} was revoked", hint="it cannot come back")
    if known is None or known.public_key != admitted.public_key:
        raise NodeMismatch(f"{admitted.node} is not admitted with this key")
