"""Work that is counted, not timed."""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(work: Callable[[], Any]) -> int:
    """How many lines of Python this takes: the same on every machine.

    What others run when the collector comes is none of them (Hypothesis has something to do then).
    """
    lines, before = 0, sys.gettrace()

    def trace(_frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    collects = gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return lines
