import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog

from gateway import telemetry
from gateway.limits import STRANGERS_LINES
from gateway.telemetry import redact, redact_text, start_logging

JWS = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJtYnAifQ.c2lnbmF0dXJlLWJ5dGVz"
INVITE = "inv_abcdefgh23456723.QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE"
LOCAL = "gwt_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE"
JOIN = "ansj1_eyJ1cmxzIjpbXX0"

Start = Callable[[str], Path]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    stops: list[Callable[[], None]] = []

    def start_at(level: str) -> Path:
        file = tmp_path / "gateway.jsonl"
        stops.append(start_logging(file, level, node="vps"))
        return file

    yield start_at
    for stop in stops:
        stop()


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize(
    "secret", [JWS, INVITE, LOCAL, JOIN, "Bearer abc", "AnsibleTicket abc", "bearer abc"]
)
@pytest.mark.parametrize("wrap", ["{}", "got '{}' from peer", "https://vps/x?code={}&y=1", '{{"a": "{}"}}'])
def test_what_looks_like_a_secret_is_cut_out_of_any_text(secret: str, wrap: str) -> None:
    cleaned = redact_text(wrap.format(secret))
    assert secret not in cleaned
    assert "[redacted]" in cleaned


@pytest.mark.parametrize(
    "text",
    [
        "evt_0190a0b0c0d07000800000000000abcd",
        "000001-0123456789ab",
        "invited mbp",
        "the token of jen",
        "m" * 43,
    ],
)
def test_ids_and_plain_words_stay(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize("piece", ["eyJ-", "eyJ", "eyJabcdefgh.", "inv_-", "gwt_.", "ansj1_", "Bearer "])
def test_a_long_text_takes_as_long_as_it_is_long(piece: str) -> None:
    """What takes its square would take hours for a text of this length, and end the test."""
    for text in (piece * 500_000, piece * 500_000 + " "):
        assert len(redact_text(text)) <= len(text)


def test_fields_named_after_secrets_are_cut_and_others_cleaned_however_deep() -> None:
    event = {
        "event": "exchange",
        "inviteToken": "x",
        "invite_id": "abc",
        "token_count": 3,
        "ticket": None,
        "headers": [{"Authorization": "x", "Host": "vps"}, (LOCAL, 5, b"raw " + LOCAL.encode())],
        "error": ValueError(f"bad {JWS}"),
    }
    assert redact(None, "info", event) == {
        "event": "exchange",
        "inviteToken": "[redacted]",
        "invite_id": "abc",
        "token_count": 3,
        "ticket": None,
        "headers": [{"Authorization": "[redacted]", "Host": "vps"}, ["[redacted]", 5, "b'raw [redacted]'"]],
        "error": "bad [redacted]",
    }


def test_the_file_has_one_json_object_a_line_with_the_bound_fields(start: Start) -> None:
    file = start("info")
    structlog.get_logger("gateway.links").info("link up", peer="mbp")
    logging.getLogger("uvicorn").warning("from %s", "elsewhere")
    first, second = lines(file)
    assert first.pop("timestamp") < second.pop("timestamp")  # type: ignore[operator]
    assert first == {
        "event": "link up",
        "peer": "mbp",
        "node": "vps",
        "level": "info",
        "logger": "gateway.links",
    }
    assert second == {"event": "from elsewhere", "node": "vps", "level": "warning", "logger": "uvicorn"}


def test_lines_below_the_level_are_not_written(start: Start) -> None:
    file = start("warning")
    structlog.get_logger().info("quiet")
    logging.getLogger("x").info("quiet")
    structlog.get_logger().error("loud")
    assert [line["event"] for line in lines(file)] == ["loud"]


def test_a_traceback_is_kept_without_the_secret_it_quotes(start: Start) -> None:
    file = start("info")
    try:
        int(f"bad {INVITE}")
    except ValueError:
        structlog.get_logger().exception("failed")
    (line,) = lines(file)
    assert "ValueError: invalid literal for int() with base 10: 'bad [redacted]" in str(line["exception"])
    assert INVITE not in file.read_text()


def test_stderr_is_json_for_programs(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    start("info")
    structlog.get_logger().info("hello")
    assert json.loads(capsys.readouterr().err)["event"] == "hello"


def test_stderr_is_text_for_people_even_with_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    stop = start_logging(None, "info", node="vps")
    try:
        int(LOCAL)
    except ValueError:
        structlog.get_logger().exception("failed", token=LOCAL)
    stop()
    assert "failed" in terminal.getvalue()
    assert "Traceback" in terminal.getvalue()
    assert LOCAL not in terminal.getvalue()


def test_the_file_rotates_and_old_ones_are_dropped(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "LOG_BYTES_MAX", 1_000)
    monkeypatch.setattr(telemetry, "LOG_FILES_MAX", 2)
    file = start("info")
    for turn in range(100):
        structlog.get_logger().info("line", turn=turn)
    kept = sorted(path.name for path in file.parent.iterdir())
    assert kept == ["gateway.jsonl", "gateway.jsonl.1", "gateway.jsonl.2"]
    assert lines(file)[-1]["turn"] == 99
    assert all(path.stat().st_size <= 1_000 for path in file.parent.iterdir())


def test_stopping_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    before = list(logging.getLogger().handlers)
    start_logging(tmp_path / "x.jsonl", "info", node="vps")()
    assert logging.getLogger().handlers == before
    assert structlog.contextvars.get_contextvars() == {}


def test_strangers_cannot_push_the_rest_out_of_the_log(start: Start) -> None:
    file = start("info")
    for _ in range(500):
        structlog.get_logger("a").info("peer.refused", code="invalid_ticket")
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
        structlog.get_logger("a").info("link.up", peer="mbp")
    events = [line["event"] for line in lines(file)]
    assert events.count("peer.refused") == events.count("Invalid HTTP request received.") == STRANGERS_LINES
    assert events.count("link.up") == 500
