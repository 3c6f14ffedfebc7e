"""What kind of world a seed makes: how many nodes, how much talk, which classes of faults at which rate.

Swarm testing: each seed switches whole classes on or off, since a fault that is always there hides what only
happens in its absence.
"""

from enum import StrEnum

import msgspec

from gateway.harness.sim.dice import Dice


class Fault(StrEnum):
    """The classes of faults."""

    DELAY = "delay"
    """Messages take seconds."""
    RESET = "reset"
    """Connections break by chance."""
    PARTITION = "partition"
    ONE_WAY = "one_way"
    """Messages get through in one direction only."""
    SLOW_LINK = "slow_link"
    CRASH = "crash"
    """At any await point."""
    CRASH_POINT = "crash_point"
    """At a named place in the code."""
    LOST_COMMIT = "lost_commit"
    """The machine dies inside a commit, which may or may not have reached the disk."""
    STOP = "stop"
    """The process stands still for a while."""
    DISK_FULL = "disk_full"
    SLOW_DISK = "slow_disk"
    SKEW = "skew"
    """Wall clocks are wrong from the beginning."""
    JUMP = "jump"
    """Wall clocks jump."""
    CLOCK_STOP = "clock_stop"
    BAD_AGENTS = "bad_agents"
    """Slow, dying, mute, nacking agents."""
    ECHO = "echo"
    """Agents that answer answers."""
    REMOVAL = "removal"
    """Agents are taken away and come back."""
    SHORT_LIFE = "short_life"
    """Messages that expire soon."""
    SMALL_INBOX = "small_inbox"
    """Inboxes are full after a few events."""
    LIAR = "liar"
    """An admitted node that breaks every rule."""
    STRANGER = "stranger"
    """A node that was never admitted."""
    APART = "apart"
    """Ordinary nodes never meet: seeds carry everything between them."""
    LYING_RELAY = "lying_relay"
    """The same, and a seed changes what it carries."""
    OLD_VERSION = "old_version"
    """Some nodes speak the frames of the version before."""
    RETENTION = "retention"
    """Outboxes keep little, and in some worlds readers are taken for dead after minutes."""
    SEVERAL = "several"
    """Some messages are for everybody, or for two or three agents."""
    AWAY = "away"
    """For minutes a node does not meet some or all of the others."""
    BLOBS = "blobs"
    """Some messages are files; not beside nodes of an older version, nor where a backup is put back."""
    RESTORE = "restore"
    """A node is put back to an older backup, by command or by hand, while the others went on."""
    CLONE = "clone"
    """The home of a node is started a second time, as from the image of a virtual machine."""
    FALLBACK = "fallback"
    """The same, and agents name nodes that answer for them meanwhile; only these worlds have heartbeats."""
    ASIDE = "aside"
    """Some nodes have their journals written by a process of its own: others have turns during a commit."""
    REPORTS = "reports"
    """Agents tell the mesh of incidents that a report found, and of their end."""
    SMALL_STORE = "small_store"
    """Where some messages are files: at some nodes they may take little, until operators allow more."""
    OLD_BACKUP = "old_backup"
    """Backups are some minutes older when they are put back: others have forgotten what they hold as open."""

    FAILED_SYNC = "failed_sync"
    """A sync fails: the process ends, and notes that a new epoch is due. Where a journal is put back by hand
    the note may lie beside it."""

    REFUSED = "refused"
    """Some nodes speak the frames of the version before and may not read all. They are refused until
    operators bring them up to date, when the faults end."""

    REVOKE = "revoke"
    """The root puts the liar out, and everybody who hears of it cuts it off."""
    EXPEL = "expel"
    """The root puts an honest node out, one that carries nothing for others; no files are sent."""
    MAINTENANCE = "maintenance"
    """Operators announce that a node will be away, switch it off, and bring it back."""

    SQLITE = "sqlite"
    """No fault: journals lie in files, and each answer is compared with that of the twin in memory."""


_FORGETTING = frozenset({Fault.RESTORE, Fault.CLONE, Fault.FALLBACK})
"""Drawn apart, so that the other classes of a seed are what they were before these three; and more seldom:
where a node is put back or runs twice no files are sent."""
_FORGETTING_ODDS = 0.2
_SQLITE_ODDS = 0.25
"""Drawn apart as well, and seldom: it takes as much time again."""

ON_REQUEST = frozenset(
    {
        Fault.REPORTS,
        Fault.SMALL_STORE,
        Fault.OLD_BACKUP,
        Fault.FAILED_SYNC,
        Fault.REFUSED,
        Fault.REVOKE,
        Fault.EXPEL,
        Fault.MAINTENANCE,
    }
)
"""Never drawn: what they write would change the worlds of all seeds, and what is known of them."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One world. Everything that happens in it follows from this record."""

    seed: int
    nodes: int
    agents_per_node: int
    minutes: int
    """How long faults and messages go on; then faults stop and the world must come to rest."""
    messages: int
    every_s: int
    """Mean time between two faults of one class."""
    faults: tuple[Fault, ...]


def draw_plan(seed: int) -> Plan:
    """The world of a seed."""
    dice, apart = Dice(seed, "plan"), Dice(seed, "plan of what nodes forget")
    odds = dice.among((0.15, 0.4, 0.7))
    files = Dice(seed, "plan of journals")

    def is_on(fault: Fault) -> bool:
        if fault is Fault.SQLITE:
            return files.chance(_SQLITE_ODDS)
        return apart.chance(_FORGETTING_ODDS) if fault in _FORGETTING else dice.chance(odds)

    return Plan(
        seed=seed,
        nodes=dice.between(3, 5),
        agents_per_node=dice.between(1, 2),
        minutes=dice.between(5, 20),
        messages=dice.between(10, 120),
        every_s=dice.among((20, 60, 180)),
        faults=tuple(fault for fault in Fault if fault not in ON_REQUEST and is_on(fault)),
    )
