"""The demo as a user runs it: real gateways, a real SIGKILL, a verdict, and nothing left behind."""

import json
import os
import subprocess
import sys

import pytest

from outbox.lock import HomeLock

pytestmark = pytest.mark.timeout(300)

CHAT = [
    {"from": "ann@vps", "to": "ben@lab", "text": "Is the lab open? مرحبا 👋", "at_ms": 0},
    {"from": "ben", "to": "ann", "text": "Until six. " + "long " * 4_000, "at_ms": 900, "reply_to": 1},
    {"from": "cy@mbp", "to": "ben", "text": "```py\nprint('tide')\n```", "at_ms": 1_000},
    {"from": "ben", "to": "cy", "text": "Runs here.", "at_ms": 1_900, "reply_to": 3},
    {"from": "cy", "to": "ben", "text": "Thanks!", "at_ms": 2_000, "reply_to": 4},
]  # fmt: skip


def demo(*arguments, **environ):
    return subprocess.run(
        [sys.executable, "-m", "gateway", "demo", *arguments],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.fixture
def chat(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in CHAT))
    return path


def test_a_conversation_survives_a_kill_and_every_planted_trouble_is_found(tmp_path, chat):
    place = tmp_path / "demo"
    done = demo("--messages", chat, "--duration", "2", "--dir", place, "--no-report", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["ok"]
    assert result["faults"] == []
    counts = result["counts"]
    assert (counts["lost"], counts["engagedTwice"]) == (0, 0)
    assert (counts["refused"], counts["deadLettered"], counts["failed"], counts["waiting"]) == (1, 1, 1, 1)
    assert counts["sent"] == len(CHAT) + 120 + 12 + 3
    assert counts["replied"] >= 12
    assert counts["resumed"] > 0
    assert result["crash"]["node"] == "lab"
    assert sorted(incident["class"] for incident in result["incidents"] if incident["planted"]) == [
        "accepted_not_processed", "dead_letter", "turn_failed",
    ]  # fmt: skip
    assert "ann" in result["refused"][0]["hint"]
    assert sorted(path.name for path in place.iterdir()) == ["logs"]
    assert {"vps.jsonl", "mbp.jsonl", "lab.jsonl"} <= {path.name for path in (place / "logs").iterdir()}


@pytest.mark.long
def test_the_report_tells_the_same_story(tmp_path, chat):
    place = tmp_path / "demo"
    done = demo("--messages", chat, "--duration", "2", "--dir", place)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "PASSED" in done.stdout
    assert str(place / "report" / "report.html") in done.stdout
    assert (place / "report" / "report.html").stat().st_size > 10_000


def test_a_bad_line_is_named_before_anything_starts(tmp_path, chat):
    with chat.open("a") as file:
        file.write('{"from": "ann", "to": "ben", "text": "hi"}\n')
    done = demo("--messages", chat, "--dir", tmp_path / "demo")
    assert done.returncode != 0
    assert f"line {len(CHAT) + 1}: " in done.stderr
    assert not (tmp_path / "demo").exists()


def test_no_gateway_outlives_a_reader_who_went_away(tmp_path, chat):
    place = tmp_path / "demo"
    with subprocess.Popen(
        [sys.executable, "-m", "gateway", "demo", "--messages", chat, "--dir", place, "--no-report"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if b"all links up" in line:
                break
        running.stderr.close()
        running.wait(timeout=250)
    for node in ("vps", "mbp", "lab"):
        with HomeLock(place / node / "lock"):
            assert (place / node / "journal.db").exists()


def test_without_java_it_says_so_at_once(tmp_path, chat):
    done = demo("--messages", chat, "--dir", tmp_path / "demo", MESH_JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert "Java" in done.stderr
    assert not (tmp_path / "demo").exists()


def test_a_directory_that_is_in_use_is_left_alone(tmp_path, chat):
    done = demo("--messages", chat, "--no-report", "--dir", tmp_path)
    assert done.returncode == 2
    assert "not empty" in done.stderr
    assert chat.exists()
