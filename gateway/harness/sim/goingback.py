"""Nodes that forget: one is put back to a backup, or the home of one runs twice."""

from typing import Protocol

from gateway.engine.own_stream import Reason
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.plan import Fault
from gateway.harness.sim.troubled import Troubled
from outbox.ids import NodeId

_BACKUP_AGE_US = 60_000_000
_OLD_BACKUP_AGE_US = 300_000_000
"""Outboxes are cut every minute and ledgers after them: what is this old may be forgotten by all."""


class World(Troubled, Protocol):
    """And what these faults need."""

    backed_up: set[NodeId]

    def restart(self, name: NodeId, dice: Dice) -> None:
        """Start a node again after a while."""
        ...


def restore(troubles: World, dice: Dice) -> None:
    """A backup is made now and put back later, unless the faults have ended by then; of each node once.

    By hand only where all links can show a node what it has forgotten: those of version 1 cannot. A sync that
    failed may have been why, and its note is still there.
    """
    name, told, mesh = dice.among(troubles.mesh.names), dice.chance(0.6), troubles.mesh
    told = told or bool(mesh.topology.old)
    note = Reason.RESTORE if told else None
    if not told and Fault.FAILED_SYNC in mesh.plan.faults and dice.chance(0.5):
        note = Reason.FAILED_SYNC
    if name in troubles.backed_up:
        return
    troubles.backed_up.add(name)
    troubles.note(name, "backup")
    image = mesh.back_up(name)

    def put_back() -> None:
        if troubles.is_on:
            mesh.restore(name, image, note)
            troubles.restart(name, dice)

    is_old = Fault.OLD_BACKUP in mesh.plan.faults
    troubles.later(dice.spaced(_OLD_BACKUP_AGE_US if is_old else _BACKUP_AGE_US), put_back)


def clone(troubles: World, dice: Dice) -> None:
    """Of one node of a world: operators find a copy sooner or later."""
    name, mesh = dice.among(troubles.mesh.names), troubles.mesh
    if not mesh.twins.of and name not in troubles.backed_up:
        troubles.backed_up.add(name)
        mesh.clone(name)
