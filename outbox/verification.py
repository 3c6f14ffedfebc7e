"""Walk a stored outbox and prove that nobody has touched it.

Batch by batch: each one must follow on, hash to its checkpoint, and carry the node's signature. Each epoch
begins with its own genesis; one that ended is walked as far as it is shown. What cannot be seen from the
inside is a tail that is gone together with its checkpoints; other nodes remember the head.
"""

from collections.abc import Callable
from typing import Protocol

from outbox.chain import Head, Page, Verify, check_signature, follow, genesis
from outbox.errors import BrokenChain
from outbox.ids import Seq, epoch_ordinal
from outbox.records import Identity

Progress = Callable[[Seq, Seq], None]
"""Called after each batch with the seq verified and the seq of the head."""


class Pages(Protocol):
    """What of a store is needed."""

    def identity(self) -> Identity:
        """Whose outbox it is."""
        ...

    def head(self) -> Head:
        """How far it goes."""
        ...

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """The next page."""
        ...


def verify_outbox(pages: Pages, verify: Verify, start: Head, progress: Progress | None = None) -> Head:
    """Verify everything after ``start`` (the genesis for all of it) and return the head that was reached.

    Raises BrokenChain or BadCheckpoint at the first batch that is wrong, and BrokenChain when the walk ends
    before the head.
    """
    identity, goal, head = pages.identity(), pages.head(), start
    while (page := pages.read(head, 1, 1)) is not None:
        check_signature(page.checkpoint, identity.mesh, identity.node, verify)
        if epoch_ordinal(page.epoch) > epoch_ordinal(head.epoch):
            head = genesis(identity.mesh, identity.node, page.epoch)
        head = follow(head, page)
        if progress is not None:
            progress(head.seq, goal.seq)
    if goal.seq and (head.epoch, head.seq) != (goal.epoch, goal.seq):
        raise BrokenChain(f"the outbox ends at {head.seq}, its head is {goal.seq}")
    return head if goal.seq else goal
