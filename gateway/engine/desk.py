"""Who decides about invites and tickets: outside the engine, and in its transaction."""

from typing import Protocol

from gateway.engine.effects import Answer
from gateway.engine.inputs import Now
from gateway.engine.knocks import Exchange, Invite, KeepRevocation, Renew, RevokeInvite, Upgrade
from stateroom.view import View

DoorRequest = Exchange | Renew | Upgrade | Invite | RevokeInvite | KeepRevocation


class Desk(Protocol):
    """Who decides about invites and tickets, in the same transaction."""

    def answer(self, item: DoorRequest, now: Now, view: View) -> Answer:
        """Raises CallerError branches to refuse; what must be remembered of it is written all the same."""
        ...
