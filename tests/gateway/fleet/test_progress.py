"""Progress on something that is no terminal: few lines, each with news."""

import io

from gateway.fleet.progress import LineProgress


class StoppedClock:
    def mono_ms(self):
        return 5_000


def test_lines_come_at_each_stage_each_named_step_and_each_quarter():
    stream = io.StringIO()
    with LineProgress(StoppedClock(), stream) as progress:
        progress.begin("conversation", 8)
        for done in range(9):
            progress.at(done)
        progress.begin("report", 3)
        for done, step in enumerate(("start", "start", "draw")):
            progress.at(done, step)
    assert [line.partition("] ")[2] for line in stream.getvalue().splitlines()] == [
        "conversation",
        "conversation: 2 of 8",
        "conversation: 4 of 8",
        "conversation: 6 of 8",
        "conversation: 8 of 8",
        "report",
        "report: start",
        "report: draw",
    ]
