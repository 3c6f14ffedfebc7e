"""The log on a disk that is full: whole lines, none twice, none lost within the bound, and back by itself."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.logfile import LogFile

KIB = 1024


class Beside(logging.Handler):
    """What people on a terminal would see."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.getMessage())


class Log:
    """A log of numbered lines, of at most 40 KiB, on a disk that may be small."""

    def __init__(self, root: Path, **bounds: int) -> None:
        self.root = root
        self.path = root / "gateway.jsonl"
        self.beside = Beside()
        sizes = {"bytes_max": 40 * KIB, "files_max": 2, "waiting_bytes_max": 64 * KIB} | bounds
        self.handler = LogFile(self.path, beside=self.beside, **sizes)
        self.handler.setFormatter(logging.Formatter('{"text": "%(message)s"}'))
        self.count = 0

    def write(self, lines: int, size: int = 300) -> None:
        for _ in range(lines):
            text = f"{self.count} ".ljust(size, ".")
            self.handler.handle(logging.LogRecord("x", logging.INFO, __file__, 1, text, None, None))
            self.count += 1

    def texts(self) -> list[str]:
        """What is in all files, oldest first; each line is whole."""
        files = sorted(self.root.glob("gateway.jsonl*"), key=lambda path: path.name, reverse=True)
        return [json.loads(line)["text"] for path in files for line in path.read_text().splitlines()]

    def numbers(self) -> list[int]:
        return [int(text.split()[0]) for text in self.texts() if text[0].isdigit() and "dropped" not in text]


def fill(root: Path) -> Path:
    """Take the rest of a disk."""
    ballast = root / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (4 * KIB, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    return ballast


def test_lines_wait_for_room_and_are_written_in_order(
    tmp_path: Path, mount_small: Callable[[Path, int], Path]
) -> None:
    log = Log(mount_small(tmp_path / "log", 128))
    log.write(20)
    ballast = fill(log.root)
    log.write(100)
    written = log.numbers()
    assert len(written) < 120, "the disk was full"
    assert written == list(range(len(written))), "each line whole, none twice"
    ballast.unlink()
    log.write(1)
    assert log.numbers() == list(range(121))
    assert [text.partition(":")[0] for text in log.beside.seen] == ["log.waiting", "log.back"]


def test_it_fills_frees_and_fills_again(tmp_path: Path, mount_small: Callable[[Path, int], Path]) -> None:
    log = Log(mount_small(tmp_path / "log", 128), waiting_bytes_max=1024 * KIB)
    for _ in range(5):
        ballast = fill(log.root)
        log.write(40)
        ballast.unlink()
        log.write(5)
    kept = log.numbers()
    assert kept == list(range(kept[0], 225)), "what has gone went by rotation, from the front"


def test_a_full_disk_does_not_keep_old_logs_from_going(
    tmp_path: Path, mount_small: Callable[[Path, int], Path]
) -> None:
    """Three files of 40 KiB do not fit on 100 KiB: the oldest makes room, nobody has to."""
    log = Log(mount_small(tmp_path / "log", 100), files_max=1)
    log.write(1_000)
    assert log.numbers()[-1] == 999


def test_what_waits_is_bounded_and_the_gap_is_told(
    tmp_path: Path, mount_small: Callable[[Path, int], Path]
) -> None:
    log = Log(mount_small(tmp_path / "log", 128), waiting_bytes_max=4 * KIB)
    ballast = fill(log.root)
    log.write(100)
    ballast.unlink()
    log.write(1)
    (gap,) = [text for text in log.texts() if "dropped" in text]
    dropped = int(gap.split()[0])
    kept = log.numbers()
    assert kept[-1] == 100
    assert len(kept) + dropped == 101


def test_closing_writes_what_waits(tmp_path: Path, mount_small: Callable[[Path, int], Path]) -> None:
    log = Log(mount_small(tmp_path / "log", 128))
    ballast = fill(log.root)
    log.write(50)
    ballast.unlink()
    log.handler.close()
    assert log.numbers() == list(range(50))


def test_a_line_that_a_kill_cut_off_spoils_no_other(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.path.write_text('{"text": "0 whole"}\n{"text": "1 cut')
    log.count = 2
    log.write(1)
    lines = log.path.read_text().splitlines()
    assert lines[1] == '{"text": "1 cut'
    assert json.loads(lines[2])["text"].startswith("2 ")


def test_a_directory_that_is_gone_and_comes_back(tmp_path: Path) -> None:
    log = Log(tmp_path / "late")
    log.write(3)
    assert log.beside.seen[0].startswith("log.waiting")
    log.root.mkdir()
    log.write(1)
    assert log.numbers() == [0, 1, 2, 3]


def test_a_line_that_cannot_be_formatted_harms_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Log(tmp_path)
    log.handler.handle(logging.LogRecord("x", logging.INFO, __file__, 1, "%d", ("no number",), None))
    log.write(1)
    assert log.numbers() == [0]
    assert "Logging error" in capsys.readouterr().err
