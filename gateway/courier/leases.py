"""The live leases of one stream, by item and by holder."""

from typing import NamedTuple

import msgspec

from gateway.courier.item import Item


class Holder(NamedTuple):
    """To whom a lease belongs: a session, or, of a subscription without one, that subscription."""

    session: str | None
    subscriber: str | None


def holder(session: str | None, subscriber: str) -> Holder:
    """The holder for leases that this subscriber gets."""
    return Holder(None, subscriber) if session is None else Holder(session, None)


class Lease(msgspec.Struct, frozen=True, gc=False):
    """An item in somebody's hands. When it ends stands in the courier's timers."""

    id: str
    item: Item
    holder: Holder

    def answers_to(self, lease_id: str | None, session: str | None) -> bool:
        """Whether the caller names this lease; what is None is not looked at."""
        same_lease = lease_id is None or lease_id == self.id
        return same_lease and (session is None or session == self.holder.session)


class Leases:
    """At most one lease an item."""

    def __init__(self) -> None:
        self._by_item: dict[str, Lease] = {}
        self._by_holder: dict[Holder, dict[str, Lease]] = {}

    def __len__(self) -> int:
        return len(self._by_item)

    def get(self, item_id: str) -> Lease | None:
        """The lease of an item."""
        return self._by_item.get(item_id)

    def items(self) -> list[str]:
        """The items in somebody's hands, oldest lease first."""
        return list(self._by_item)

    def of(self, who: Holder) -> list[Lease]:
        """A holder's leases, oldest first."""
        return list(self._by_holder.get(who, {}).values())

    def add(self, lease: Lease) -> None:
        """Keep a new lease."""
        self._by_item[lease.item.id] = lease
        self._by_holder.setdefault(lease.holder, {})[lease.item.id] = lease

    def end(self, item_id: str) -> None:
        """Forget the lease of an item; none is fine."""
        lease = self._by_item.pop(item_id, None)
        if lease is None:
            return
        held = self._by_holder[lease.holder]
        del held[item_id]
        if not held:
            del self._by_holder[lease.holder]
