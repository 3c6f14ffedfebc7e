"""How far a run is: bars on a terminal, plain lines anywhere else. Always on stderr."""

import sys
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from gateway.clock import Clock


class Progress(Protocol):
    """Says what is being done; one stage after the other."""

    def begin(self, what: str, total: int = 1) -> None:
        """The next stage has so many steps; the one before is done."""
        ...

    def at(self, done: int, what: str = "") -> None:
        """So many steps are done; ``what`` names the one at hand."""
        ...

    def say(self, line: str) -> None:
        """Something happened that is worth a line."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class BarProgress:
    """One bar a stage."""

    def __init__(self) -> None:
        self._bars = Bars(
            TextColumn("{task.description}", table_column=None),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[step]}"),
            console=Console(stderr=True),
        )
        self._task: TaskID | None = None

    def begin(self, what: str, total: int = 1) -> None:
        """The next bar."""
        self._finish()
        self._task = self._bars.add_task(f"{what:<22}", total=total, step="")

    def at(self, done: int, what: str = "") -> None:
        """Move it."""
        if self._task is not None:
            self._bars.update(self._task, completed=done, step=what)

    def say(self, line: str) -> None:
        """Above the bars."""
        self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _finish(self) -> None:
        if self._task is not None:
            total = self._bars.tasks[self._task].total
            self._bars.update(self._task, completed=total, step="")
            self._bars.stop_task(self._task)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._finish()
        self._bars.stop()


class LineProgress:
    """A line at the start of each stage, at each named step, and at each quarter of a long one."""

    def __init__(self, clock: Clock, stream: TextIO) -> None:
        self._clock = clock
        self._stream = stream
        self._started_ms = clock.mono_ms()
        self._what = ""
        self._total = 1
        self._shown = ""
        self._quarter = 0

    def begin(self, what: str, total: int = 1) -> None:
        """Name the stage."""
        self._what, self._total, self._shown, self._quarter = what, total, "", 0
        self._line(what)

    def at(self, done: int, what: str = "") -> None:
        """Say it when it is news."""
        quarter = 4 * done // self._total
        if what and what != self._shown:
            self._shown = what
            self._line(f"{self._what}: {what}")
        elif not what and quarter > self._quarter:
            self._line(f"{self._what}: {done} of {self._total}")
        self._quarter = quarter

    def say(self, line: str) -> None:
        """A line like the others."""
        self._line(line)

    def _line(self, text: str) -> None:
        seconds = (self._clock.mono_ms() - self._started_ms) / 1000
        self._stream.write(f"[{seconds:5.1f} s] {text}\n")
        self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


def make_progress(clock: Clock) -> Progress:
    """What fits to this stderr."""
    return BarProgress() if sys.stderr.isatty() else LineProgress(clock, sys.stderr)
