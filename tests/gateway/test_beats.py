"""Heartbeats rise over jumps of the clock and over restarts."""

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gateway.beats import BeatCounter

NOW = 1_780_000_000_000
DAY = 86_400_000


@given(st.lists(st.integers(NOW - 900 * DAY, NOW + 900 * DAY), min_size=2))
def test_they_rise_whatever_the_clock_does(readings: list[int]) -> None:
    counter = BeatCounter(None)
    found = [counter.next(wall_ms) for wall_ms in readings]
    assert all(before < after for before, after in pairwise(found))
    assert all(beat >= wall_ms for beat, wall_ms in zip(found, readings, strict=True))


def test_they_rise_over_restarts_with_a_clock_that_was_set_back(tmp_path: Path) -> None:
    last = 0
    for wall_ms in (NOW, NOW - DAY, NOW - 2 * DAY, NOW + 5, NOW - 3 * DAY):
        counter = BeatCounter(tmp_path / "beats")
        for step in range(3):
            found = counter.next(wall_ms + 5_000 * step)
            assert found > last
            last = found
    assert last < NOW + DAY, "restarts run ahead by an hour each, not more"


def test_one_write_serves_an_hour(tmp_path: Path) -> None:
    counter = BeatCounter(tmp_path / "beats")
    counter.next(NOW)
    written = (tmp_path / "beats").stat().st_mtime_ns
    for second in range(0, 3_600, 5):
        counter.next(NOW + second * 1000)
    assert (tmp_path / "beats").stat().st_mtime_ns == written
    counter.next(NOW + 3_600_001)
    assert (tmp_path / "beats").stat().st_mtime_ns > written


def test_a_file_that_cannot_be_read_or_written_does_not_silence_the_node(tmp_path: Path) -> None:
    (tmp_path / "beats").write_text("nonsense")
    assert BeatCounter(tmp_path / "beats").next(NOW) == NOW
    gone = BeatCounter(tmp_path / "no" / "such" / "beats")
    assert [gone.next(NOW), gone.next(NOW - DAY)] == [NOW, NOW + 1]
