"""Nodes that have written two histories of one epoch: found, told, and judged by what they do next.

Nothing more is read of such an epoch. What its writer is taken for depends on its own word: a node that had
forgotten announces a later epoch and is read on there, so nobody honest is locked out; a liar, or a copy that
runs beside the original, stays where it is.
"""

from enum import StrEnum

from gateway.engine.effects import ForkFound
from gateway.engine.inputs import PageRead
from gateway.engine.tick import Tick
from outbox.chain import Head
from outbox.forks import find_fork
from outbox.ids import Epoch, NodeId, Seq, epoch_ordinal
from stateroom.view import View

FORK = "fork"
ROLLBACK = "rollback"
RECREATED = "stream_recreated"


class ForkClass(StrEnum):
    """What a proven fork is taken for."""

    FORK = "fork"
    """Nothing more is known: its writer lies, or a copy of it runs."""
    ROLLBACK = "rollback"
    """The key that forked has announced a later epoch: it had forgotten, and goes on there."""


def classify(view: View, node: NodeId, epoch: Epoch) -> ForkClass:
    """What the fork of an epoch is taken for."""
    found = view.node(node)
    announced = found.outbox_epoch if found is not None else None
    later = announced is not None and epoch_ordinal(announced) > epoch_ordinal(epoch)
    return ForkClass.ROLLBACK if later else ForkClass.FORK


def find(tick: Tick, read: PageRead) -> str:
    """What a page that does not follow on proves, with what was read before; empty when nothing."""
    known, page = tick.store.signed_cursor(read.node), read.page
    if known is None or not page.before:
        return ""
    start = Head(page.epoch, Seq(page.entries[0].seq - 1), page.before)
    proof = find_fork(known, start, [entry.leaf for entry in page.entries], page.checkpoint)
    if proof is None:
        return ""
    tick.effects.append(ForkFound(proof))
    tick.open_incident(FORK, f"{read.node}/{page.epoch}", f"two histories at {known.seq}")
    return f"{read.node} has written {known.seq} of {page.epoch} twice"


def note(tick: Tick) -> None:
    """What the room proves of others: who wrote twice, and of whom it was a rollback."""
    me = tick.identity.node
    for node, forks in tick.view.forks.items():
        for fork in forks if node != me else ():
            subject, detail = f"{node}/{fork.epoch}", f"two histories at {fork.seq}"
            if classify(tick.view, node, fork.epoch) is ForkClass.FORK:
                tick.open_incident(FORK, subject, detail)
            else:
                tick.close_incident(FORK, subject)
                tick.note_incident(ROLLBACK, subject, detail)


def note_recreation(tick: Tick, read: PageRead, why: str) -> None:
    """Epochs only rise: another one of the same ordinal is no continuation."""
    tick.open_incident(RECREATED, f"{read.node}/{read.page.epoch}", why)
