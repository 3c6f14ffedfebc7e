"""The classes of faults that a run on real processes can inject, and what each of them does."""

from enum import StrEnum

from gateway.errors import ConfigError


class FaultClass(StrEnum):
    """Named on the command line."""

    KILL = "kill"
    """SIGKILL; the gateway comes back after a while."""
    CRASH = "crash"
    """It is started again so that it dies at a named place of its code, and again as ever."""
    STOP = "stop"
    """SIGSTOP, then SIGCONT: it is there and says nothing."""
    PARTITION = "partition"
    """Nothing passes between two nodes, and nobody is told."""
    ONEWAY = "oneway"
    """The same in one direction only."""
    FLAP = "flap"
    """Their connections break again and again."""
    SLOW = "slow"
    """What passes between them takes long."""
    DISKFULL = "diskfull"
    """No byte is left on the disk of the journal."""
    SLOWFSYNC = "slowfsync"
    """The disk confirms late."""
    FAILFSYNC = "failfsync"
    """The disk does not confirm: the gateway ends by design, and is started again."""
    CLOCK = "clock"
    """It is started again under a clock that is minutes off."""
    STORM = "storm"
    """All gateways are started again, several times."""
    RESTORE = "restore"
    """It is put back to what it was a while before, by backup or by an old copy of its home."""
    CLONE = "clone"
    """A second process runs on a copy of its home, and is stopped for good."""
    SEEDLOSS = "seedloss"
    """The node that founded the mesh is away for a long part of the run."""


OF_LINKS = frozenset({FaultClass.PARTITION, FaultClass.ONEWAY, FaultClass.FLAP, FaultClass.SLOW})
"""They happen to two nodes; the others to one, the storm to all."""

OF_MEMORY = frozenset({FaultClass.RESTORE, FaultClass.CLONE})
"""After them a node has forgotten something; they happen to one node of a mesh after the other."""


def chosen(text: str) -> tuple[FaultClass, ...]:
    """``all``, ``none`` or names by comma, in the order of the table. Raises ConfigError."""
    if text == "all":
        return tuple(FaultClass)
    names = set() if text == "none" else {part.strip() for part in text.split(",")}
    unknown = sorted(names - set(FaultClass))
    if unknown:
        raise ConfigError(
            f"{unknown[0][:40]!r} is no class of faults", hint=f"all, none, or of: {', '.join(FaultClass)}"
        )
    return tuple(fault for fault in FaultClass if fault in names)
