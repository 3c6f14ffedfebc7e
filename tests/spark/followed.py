"""A stream as a process that can be killed: ``python -m tests.spark.followed LAKE OUT CACHE STEP``.

Without a step it takes what is there. With one it dies by SIGKILL when it comes to it: ``state``, ``changes``
(before the write), ``over``, ``tell``, ``forget``, or ``commit`` (all done, and Spark has not noted it yet).
"""

import os
import signal
import sys
from pathlib import Path

from spark import stream
from spark.following import follow
from tests.spark.histories import AS_OF_MS
from tests.spark.reporting import THRESHOLDS


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(lake: Path, out: Path, cache: Path, step: str) -> None:
    write, put, forget, take = stream._write, stream.put, stream._forget, stream.take

    def deadly_write(frame, directory):
        if directory.parent.name == step:
            die()
        write(frame, directory)

    def deadly_put(*arguments):
        if step == "over":
            die()
        put(*arguments)

    def deadly_forget(place, below):
        if step == "forget":
            die()
        forget(place, below)

    def deadly_take(frame, number, following):
        take(frame, number, following)
        if step == "commit":
            die()

    stream._write, stream.put = deadly_write, deadly_put
    stream._forget, stream.take = deadly_forget, deadly_take

    def tell(news):
        if step == "tell":
            die()

    follow(lake, out, now_ms=lambda: AS_OF_MS, tell=tell, interval_s=None, cache=cache, thresholds=THRESHOLDS)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]), sys.argv[4] if len(sys.argv) > 4 else "")
