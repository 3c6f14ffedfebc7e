"""Errors of the gateway's shells, below the mesh's tree.

::

    MeshError
    ├── CallerError
    │   ├── Denied            refused               the gateway said no; carries the code it gave
    │   └── ConfigError       config_error          gateway.toml, a flag or the environment is wrong
    └── WorldError
        ├── Busy              busy                  the queue of inputs is full
        ├── Unreachable       unreachable           nothing listens there, or it is no gateway
        ├── CopyRunning       copy_runs             another process writes with the key of this node
        ├── EngineLost        engine_lost           the process that writes the journal ended by itself
        ├── HomeError         home_error            the node's home or address is missing or unfit
        └── TimedOut          timed_out             no answer in time; what was sent stays sent
"""

from outbox.errors import CallerError, MeshError, WorldError


class Denied(CallerError):
    """A gateway refused a request; ``wire_code`` is the code it gave."""

    code = "refused"

    def __init__(
        self,
        wire_code: str,
        what: str,
        *,
        hint: str = "",
        retryable: bool = False,
        words: tuple[str, ...] = (),
    ) -> None:
        super().__init__(what, hint=hint)
        self.wire_code = wire_code
        self.is_retryable = retryable
        self.words = words
        """Signed revocations that explain it; whoever reads them verifies them."""


def as_told(error: MeshError) -> tuple[str, bool]:
    """Code and whether it is retryable, as a client is told over HTTP and sockets alike.

    A denial passes on what the gateway said that refused.
    """
    if isinstance(error, Denied):
        return error.wire_code, error.is_retryable
    return error.code, error.retryable


class Busy(WorldError):
    """Too much is waiting for the disk; try again in a moment."""

    code = "busy"


class Unreachable(WorldError):
    """Nothing listens there, or it is no gateway."""

    code = "unreachable"


class TimedOut(WorldError):
    """No answer in time; what was sent stays sent."""

    code = "timed_out"


class ConfigError(CallerError):
    """A setting (gateway.toml, environment or flag) is unknown or out of range."""

    code = "config_error"


class HomeError(WorldError):
    """What a node needs on this machine, its home or its address, is missing, taken or open to others."""

    code = "home_error"
    retryable = False


class CopyRunning(WorldError):
    """Another process goes on writing with the key of this node."""

    code = "copy_runs"
    retryable = False


class EngineLost(WorldError):
    """The process of this gateway that writes its journal has ended by itself."""

    code = "engine_lost"
