"""Which faults this machine lets the harness inject, and why not the others."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from gateway.harness.real.faultclass import FaultClass

_FAKETIME = (
    "/usr/lib/*/faketime/libfaketimeMT.so.1",
    "/usr/lib*/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
)
_TRY_WITHIN_S = 10.0


def missing(faults: tuple[FaultClass, ...]) -> dict[FaultClass, str]:
    """Of these classes the ones that cannot be injected here, with the reason."""
    reasons = {fault: _reason(fault) for fault in faults}
    return {fault: reason for fault, reason in reasons.items() if reason}


def faketime() -> str | None:
    """The library that sets a process's clock, for several threads."""
    found = (path for pattern in _FAKETIME for path in sorted(Path("/").glob(pattern.lstrip("/"))))
    return next(map(str, found), None)


def _reason(fault: FaultClass) -> str:
    match fault:
        case FaultClass.SLOWFSYNC | FaultClass.FAILFSYNC:
            return _no_strace()
        case FaultClass.DISKFULL:
            return _no_tmpfs()
        case FaultClass.CLOCK:
            return "" if faketime() else "libfaketime is not installed"
        case _:
            return ""


def _no_strace() -> str:
    if sys.platform != "linux" or shutil.which("strace") is None:
        return "strace is not installed"
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if os.geteuid() != 0 and scope.exists() and scope.read_text().strip() != "0":
        return "only root may trace other processes here (kernel.yama.ptrace_scope)"
    return "" if _works("strace", "-o", os.devnull, "true") else "strace may not trace here (ptrace)"


def _no_tmpfs() -> str:
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a small disk needs Linux and root"
    with tempfile.TemporaryDirectory() as place:
        if not _works("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place):
            return "mounting is not allowed here"
        return "" if _works("umount", place) else "unmounting is not allowed here"


def _works(*command: str) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TRY_WITHIN_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
