"""Which faults this machine lets the harness inject, and why not the others."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.errors import ConfigError
from gateway.harness.real.faultclass import FaultClass
from gateway.harness.real.net import Net

_FAKETIME = (
    "/usr/lib/*/faketime/libfaketimeMT.so.1",
    "/usr/lib*/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
)
_TRY_WITHIN_S = 10.0


def check_network(net: Net) -> None:
    """Raises ConfigError when this machine has no such network."""
    reason = _no_namespaces() if net is Net.NS else ""
    if reason:
        raise ConfigError(f"--net {net} does not work here: {reason}", hint="leave --net out")


def missing(faults: tuple[FaultClass, ...], net: Net) -> dict[FaultClass, str]:
    """Of these classes the ones that cannot be injected here, with the reason."""
    reasons = {fault: _reason(fault, net) for fault in faults}
    return {fault: reason for fault, reason in reasons.items() if reason}


def faketime() -> str | None:
    """The library that sets a process's clock, for several threads."""
    found = (path for pattern in _FAKETIME for path in sorted(Path("/").glob(pattern.lstrip("/"))))
    return next(map(str, found), None)


def _reason(fault: FaultClass, net: Net) -> str:
    match fault:
        case FaultClass.SLOWFSYNC | FaultClass.FAILFSYNC:
            return _no_strace()
        case FaultClass.DISKFULL:
            return _no_tmpfs()
        case FaultClass.SLOW if net is Net.NS:
            return _no_netem()
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


def _no_namespaces() -> str:
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need Linux and root"
    if shutil.which("ip") is None:
        return "ip is not installed (package iproute2)"
    with _namespace() as name:
        return "" if name else "network namespaces are not allowed here"


def _no_netem() -> str:
    with _namespace() as name:
        tried = ("netns", "exec", name, "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
        return "" if name and _works("ip", *tried) else "this kernel has no netem (tc qdisc … netem)"


@contextmanager
def _namespace() -> Iterator[str]:
    """One to try things in; its name is empty when there can be none."""
    name = f"gw{os.getpid()}-probe"
    made = _works("ip", "netns", "add", name)
    try:
        yield name if made else ""
    finally:
        if made:
            _works("ip", "netns", "delete", name)


def _works(*command: str) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TRY_WITHIN_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
