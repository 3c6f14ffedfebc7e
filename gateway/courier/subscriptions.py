"""Who reads one stream, and whose turn it is."""

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Subscription:
    """One reader of one stream."""

    id: str
    stream: str
    session: str | None
    """Leases belong to the session and outlive the connection; without one they belong to the connection."""
    credit: int = 0
    is_resuming: bool = False
    """It is still given again what its session has: nothing new before that."""


class Ring:
    """Subscriptions with credit, served one item each in turn.

    Whoever comes (back) to credit stands at the tail, so N readers that grant one at a time get equal shares.
    """

    def __init__(self) -> None:
        self.turns: OrderedDict[str, Subscription] = OrderedDict()
        """Who has credit, next one first."""

    def grant(self, subscription: Subscription, credit: int) -> None:
        """Add credit; one who still has some keeps its place."""
        subscription.credit += credit
        if not subscription.is_resuming:
            self.turns.setdefault(subscription.id, subscription)

    def resumed(self, subscription: Subscription) -> None:
        """It has all that it had: what was granted meanwhile counts."""
        subscription.is_resuming = False
        if subscription.credit:
            self.turns.setdefault(subscription.id, subscription)

    def spend(self) -> Subscription:
        """Charge the one whose turn it is. Raises KeyError when nobody has credit."""
        name, subscription = self.turns.popitem(last=False)
        subscription.credit -= 1
        if subscription.credit:
            self.turns[name] = subscription
        return subscription

    def leave(self, subscription: Subscription) -> None:
        """Drop a reader and its credit."""
        self.turns.pop(subscription.id, None)
        subscription.credit = 0
