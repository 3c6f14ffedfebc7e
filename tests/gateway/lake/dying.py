"""Processes that work on a lake and die by SIGKILL before the n-th thing that they do to the disk.

``python -m tests.gateway.lake.dying WORK ROOT COUNT`` does the work again and again, each time on a lake of
its own (``ROOT/<n>``, a copy of ``ROOT/template`` where there is one) and dying one step later, until it
comes to its end; it prints how many steps that took.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from unittest.mock import patch

from gateway.lake import collector
from gateway.lake import lake as lake_module
from gateway.lake.collector import collect
from gateway.lake.lake import Lake
from outbox.chain import Entry
from tests.gateway.outboxes import NOW_MS, STREAM, Outbox, entry, message, verify

STEPS_MAX = 2_000
ROWS_MAX = 10
"""Of a collected file, and twice that of a compacted one: several of each, from few entries."""

TOUCHES = frozenset(
    {"open", "os.mkdir", "os.rename", "os.remove", "os.scandir", "os.listdir", "fcntl.flock", "os.truncate"}
)


@cache
def outbox(count: int) -> Outbox:
    """Messages in batches of ten, of which two are no events."""
    entries = [entry(seq, message(seq)) for seq in range(1, count + 1)]
    for seq in (2, 14):
        entries[seq - 1] = Entry(seq, b"{}", b"junk")
    return Outbox(entries)


def bring(root: Path, count: int) -> None:
    """Collect all of it."""
    with patch.object(collector, "FILE_ROWS_MAX", ROWS_MAX):
        collect(outbox(count), Lake(root), STREAM, verify, now_ms=NOW_MS, progress=lambda _: None)


def compact(root: Path, count: int) -> None:
    """Write larger files."""
    with patch.object(lake_module, "COMPACT_ROWS_MAX", 2 * ROWS_MAX):
        Lake(root).compact((STREAM.node, STREAM.epoch))


Work = Callable[[Path, int], None]
WORKS: dict[str, Work] = {"collect": bring, "compact": compact}


def die_at(step: int, root: Path, work: Work, count: int) -> None:
    """Work in this process, which dies before the ``step``-th thing, or ends with 0."""
    left = step

    def watch(event: str, arguments: tuple) -> None:
        nonlocal left
        if event in TOUCHES and (event != "open" or str(root) in str(arguments[0])):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    work(root, count)
    os._exit(0)


def main(work: str, root: Path, count: int) -> None:
    outbox(count)
    template = root / "template"
    for step in range(1, STEPS_MAX):
        if template.exists():
            shutil.copytree(template, root / str(step))
        pid = os.fork()
        if pid == 0:
            die_at(step, root / str(step), WORKS[work], count)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            print(step, os.waitstatus_to_exitcode(status))
            return


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
