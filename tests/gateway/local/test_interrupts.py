"""Ctrl-C in the middle of what takes long: one line, exit 130, and nothing half done under its final name."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from auth.keyring import Keyring
from gateway.clock import Clock
from gateway.founding import found
from gateway.home import Home
from outbox.ids import NodeId
from outbox.journal import Journal
from tests.appending import append
from tests.gateway.outboxes import entry, message

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What bars do to a terminal."""

ENTRIES = 6_000
"""Each with a signature of its own: a second to walk through."""

TRIES_MAX = 20
"""A busy machine may let a command end before it lets us press the key."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Of a node with a long outbox."""
    root = tmp_path_factory.mktemp("home")
    made = Home(root / "vps", root / "run")
    found(made, NodeId("vps"), Clock(), {})
    key = Keyring(made.keys).kept_node_key()
    journal = Journal.open(made.journal, wal_bytes=0)
    who, head = journal.identity(), journal.head()
    journal.begin()
    for seq in range(head.seq + 1, head.seq + ENTRIES + 1):
        entries = [entry(seq, message(seq, source_node_id=who.node, thread_id=None))]
        append(journal, entries, key.sign)
    journal.commit()
    journal.close()
    return made


def gateway(home: Home, *words: object) -> list[str]:
    return [sys.executable, "-m", "gateway", "--home", str(home.root), *map(str, words)]


def interrupted(command: Sequence[str], sign: Callable[[str], bool], out: Path) -> tuple[int, str]:
    """Run it on a terminal, press Ctrl-C as soon as that shows a sign, and return how it ended and what the
    terminal showed after."""
    ours, theirs = pty.openpty()
    with out.open("wb") as stdout, os.fdopen(ours, "rb", buffering=0) as terminal:
        process = subprocess.Popen(command, stdout=stdout, stderr=theirs)
        os.close(theirs)
        shown, is_sent = "", False
        while piece := _read(terminal.fileno()):
            shown += piece
            if not is_sent and sign(shown):
                process.send_signal(signal.SIGINT)
                shown, is_sent = "", True
        return process.wait(60), shown


def _read(descriptor: int) -> str:
    """What the terminal shows next; "" when the program has closed it."""
    try:
        return os.read(descriptor, 4096).decode(errors="replace")
    except OSError:
        return ""


def interrupt(command_of: Callable[[int], Sequence[str]], sign: Callable[[str], bool], out: Path) -> int:
    """Interrupt a command in its middle, check how it ended, and return which of the tries that was."""
    for number in range(TRIES_MAX):
        code, shown = interrupted(command_of(number), sign, out)
        if code:
            check_ended(code, shown)
            return number
        assert "gateway:" not in shown, "it had ended before"
    pytest.fail(f"it was over {TRIES_MAX} times before it was interrupted")


def check_ended(code: int, shown: str) -> None:
    plain = _CONTROL.sub("", shown).replace("\r", "\n")
    lines = [line for line in plain.splitlines() if line.strip()]
    assert code == 130, shown
    assert lines[-1] == "gateway: interrupted", shown
    assert "Traceback" not in shown
    said = [line for line in lines if "gateway:" in line]
    assert len(said) == 1, shown


def test_verify(home: Home, tmp_path: Path) -> None:
    interrupt(lambda _: gateway(home, "outbox", "verify"), lambda shown: "%" in shown, tmp_path / "out")
    assert (tmp_path / "out").read_text() == ""


def test_export_ends_after_a_whole_line(home: Home, tmp_path: Path) -> None:
    out = tmp_path / "out"
    interrupt(lambda _: gateway(home, "outbox", "export"), lambda shown: "%" in shown, out)
    for line in out.read_text().splitlines()[:-1]:
        json.loads(line)


def files(lake: Path) -> set[str]:
    return {str(path.relative_to(lake)) for path in lake.rglob("*") if path.is_file()}


def lake_is_sound(home: Home, lake: Path) -> None:
    done = subprocess.run(
        gateway(home, "lake", "verify", "--lake", lake, "--json"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_collect_goes_on_where_it_was_interrupted(home: Home, tmp_path: Path) -> None:
    def collect(number: int) -> Sequence[str]:
        return gateway(home, "collect", "--lake", tmp_path / f"lake{number}")

    number = interrupt(collect, lambda shown: "collected up to" in shown, tmp_path / "out")
    lake = tmp_path / f"lake{number}"
    lake_is_sound(home, lake)
    subprocess.run(collect(number), check=True, capture_output=True, timeout=60)
    lake_is_sound(home, lake)
    assert not [name for name in files(lake) if name.endswith(".tmp")]


def test_compact_leaves_the_old_files_or_the_new_one(home: Home, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    subprocess.run(gateway(home, "collect", "--lake", lake), check=True, capture_output=True, timeout=60)
    compact = gateway(home, "lake", "compact", "--lake", lake)
    code, shown = interrupted(compact, lambda shown: "compact" in shown, tmp_path / "out")
    if code:
        check_ended(code, shown)
    else:  # six thousand rows may be done before the key arrives, and their end shown with the first sign
        assert "gateway:" not in shown
    lake_is_sound(home, lake)
    subprocess.run(compact, check=True, capture_output=True, timeout=60)
    lake_is_sound(home, lake)


@pytest.mark.long
@pytest.mark.parametrize("step", ["start Spark", "lifecycle", "incidents", "latency", "figures"])
def test_report_leaves_no_half_of_one(home: Home, tmp_path: Path, step: str) -> None:
    lake = tmp_path / "lake"
    subprocess.run(
        gateway(home, "lake", "generate", "--lake", lake, "--events", "5k"),
        check=True,
        capture_output=True,
        timeout=60,
    )

    def report(number: int) -> Sequence[str]:
        return gateway(home, "report", "--lake", lake, "--out", tmp_path / f"report{number}")

    number = interrupt(report, lambda shown: f"] {step}" in shown, tmp_path / "out")
    out = tmp_path / f"report{number}"
    assert not (out / "report.html").exists()
    assert not (out / "incidents.json").exists()
    assert not (out / ".spark").exists(), "what Spark spilled is gone"
