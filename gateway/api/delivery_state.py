"""How a delivery stands, in words for people: the stored state, and what an unanswered one waits for.

Waiting is shown and never stored: it changes with links and presence, and burns no attempt.
Source: the sender's delivery in ``docs/PROTOCOL.md``.
"""

from outbox.delivery import INBOX_FULL
from outbox.ids import NodeId
from outbox.records import Delivery, DeliveryState

WAITING_FOR_OWNER = "waiting_for_owner"
WAITING_FOR_LINK = "waiting_for_link"

WAITING_FOR_MAINTENANCE = "waiting_for_maintenance"
"""Its node cannot be reached, and has said that it would be away."""

WAITING_FOR_ROOM = "waiting_for_room"
"""The inbox of its agent is full: it is asked again."""

WAITING = (WAITING_FOR_LINK, WAITING_FOR_OWNER, WAITING_FOR_MAINTENANCE, WAITING_FOR_ROOM)
"""All that is shown of an unanswered delivery beside its stored state."""

_UNANSWERED = frozenset({DeliveryState.EMITTED, DeliveryState.RETRY_PENDING})


def shown_state(row: Delivery, *, local: bool, online: bool, linked: bool, away: bool) -> str:
    """The state to show, given whether the event stays here, its node is online, a link to it is up, and
    it has announced maintenance.
    """
    if row.state not in _UNANSWERED:
        return row.state
    waits = unaccepted_state(row.node, local=local, online=online, linked=linked, away=away)
    if waits != DeliveryState.EMITTED:
        return waits
    full = row.state is DeliveryState.RETRY_PENDING and row.error == INBOX_FULL
    return WAITING_FOR_ROOM if full else row.state


def unaccepted_state(node: NodeId | None, *, local: bool, online: bool, linked: bool, away: bool) -> str:
    """What events wait for that nobody has accepted; ``emitted`` when nothing is in their way."""
    if away and not (local or (online and linked)):
        return WAITING_FOR_MAINTENANCE
    if node is None or not (local or online):
        return WAITING_FOR_OWNER
    return DeliveryState.EMITTED if local or linked else WAITING_FOR_LINK
