"""How commands end: one exit code a reason, and three lines on stderr that say what, why and what to do.

====  ==========================================================
0     done
1     failed
2     wrong usage
3     nothing found
4     no gateway answers
5     refused
6     timed out; what was sent stays queued
130   interrupted
====  ==========================================================
"""

import inspect
import sys
from enum import IntEnum

from gateway.errors import ConfigError, Denied, TimedOut, Unreachable
from outbox.errors import CallerError, InvalidId, MeshError, NotFound
from outbox.plaintext import one_line

_LINE = 400


class Exit(IntEnum):
    """The codes."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOTHING = 3
    UNREACHABLE = 4
    REFUSED = 5
    TIMED_OUT = 6
    INTERRUPTED = 130


_WIRE: dict[str, Exit] = {
    "not_found": Exit.NOTHING,
    "unknown_stream": Exit.NOTHING,
    "invalid_id": Exit.USAGE,
    "invalid_request": Exit.USAGE,
}
"""What the gateway answered, as the command would have said it; everything else is a refusal."""

_BY_KIND: tuple[tuple[type[MeshError], Exit], ...] = (
    (Unreachable, Exit.UNREACHABLE),
    (TimedOut, Exit.TIMED_OUT),
    (NotFound, Exit.NOTHING),
    (InvalidId, Exit.USAGE),
    (ConfigError, Exit.USAGE),
    (CallerError, Exit.REFUSED),
)
"""First match counts."""


def exit_of(error: MeshError) -> Exit:
    """The code of an error."""
    if isinstance(error, Denied):
        return _WIRE.get(error.wire_code, Exit.REFUSED)
    return next((code for kind, code in _BY_KIND if isinstance(error, kind)), Exit.FAILED)


def explain(error: MeshError) -> None:
    """Say on stderr what happened, why, and what to do."""
    lines = {"gateway:": str(error), "    why:": _why(error), "     do:": error.hint}
    for label, text in lines.items():
        if text:
            print(label, one_line(text, _LINE), file=sys.stderr)  # noqa: T201


def _why(error: MeshError) -> str:
    if isinstance(error, Denied):
        return f"the gateway answered {error.wire_code}"
    return (inspect.getdoc(type(error)) or error.code).partition("\n")[0]
