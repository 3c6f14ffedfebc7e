"""A disk whose every sync takes longer: ``strace`` starts a program and holds back the syncs of its threads.

With a seccomp filter, so that all other calls run at full speed. It works for programs that call the kernel
without the C library too (NATS), so both sides of a ratio have the same disk.
"""

import shutil
import sys

SYNCS = "fsync,fdatasync,sync_file_range"


def why_not_slow() -> str:
    """Why syncs cannot be made slow here; empty when they can."""
    if sys.platform != "linux" or shutil.which("strace") is None:
        return "strace is not installed"
    return ""


def slowed(delay_ms: float) -> tuple[str, ...]:
    """What to put before a command; nothing for no delay."""
    if not delay_ms:
        return ()
    inject = f"inject={SYNCS}:delay_enter={int(delay_ms * 1000)}"
    options = ("--seccomp-bpf", "-D", "-f", "-qq", "-o", "/dev/null")
    return ("strace", *options, "-e", f"trace={SYNCS}", "-e", inject)
