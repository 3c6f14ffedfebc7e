"""What the gateway writes down: structlog, to stderr for whoever watches and to a file.

JSON where a program reads (the file, and a stderr that is no terminal), lines for people on a terminal.
Secrets are cut out before anything is written: by the name of their field, and by their look anywhere.
"""

import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from gateway.limits import LOG_BYTES_MAX, LOG_FILES_MAX, LOG_WAITING_BYTES_MAX
from gateway.logfile import LogFile
from gateway.trickle import Trickle

_REDACTED = "[redacted]"
_SECRET_FIELD = re.compile(
    r"token|ticket|invite|secret|password|authorization|cookie|proof|private|join_?code", re.IGNORECASE
)
_HARMLESS_FIELD = re.compile(r"_(id|ids|count|ms|bytes|status)$", re.IGNORECASE)
"""``invite_id`` and ``token_count`` tell nothing secret."""

_SECRET_TEXT = re.compile(
    r"\beyJ[\w-]{8,}+(?:\.[\w-]*){0,2}"  # a JWS: ticket or proof; a head alone too
    r"|\b(?:inv|gwt|ansj1)_[\w.-]{8,}"  # invite, local token, join code
    r"|\b(?:Bearer|AnsibleTicket)\s+[^\s'\",]+",
    re.ASCII | re.IGNORECASE,
)


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """A structlog processor that cuts secrets out of every field, however deep."""
    return {name: _clean_field(name, value) for name, value in event.items()}


def redact_text(text: str) -> str:
    """Text without anything that looks like a token, ticket, invite or join code."""
    return _SECRET_TEXT.sub(_REDACTED, text)


def _clean_field(name: str, value: object) -> object:
    if value is not None and _SECRET_FIELD.search(name) and not _HARMLESS_FIELD.search(name):
        return _REDACTED
    return _clean(value)


def _clean(value: object) -> object:
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return redact_text(value)
        case dict():
            return {str(name): _clean_field(str(name), inner) for name, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_clean(inner) for inner in value]
        case _:
            return redact_text(str(value))


def start_logging(log_file: Path | None, level: str, **fields: str) -> Callable[[], None]:
    """Set up logging for this process; ``fields`` (``node`` …) stand on every line.

    ``log_file`` None: stderr only. Returns what undoes it: flushes and closes the file.
    """
    root = logging.getLogger()
    stderr = logging.StreamHandler(sys.stderr)
    stderr.setFormatter(_formatter(for_people=sys.stderr.isatty()))
    handlers: list[logging.Handler] = [stderr]
    if log_file is not None:
        written = LogFile(
            log_file,
            bytes_max=LOG_BYTES_MAX,
            files_max=LOG_FILES_MAX,
            waiting_bytes_max=LOG_WAITING_BYTES_MAX,
            beside=stderr,
        )
        written.setFormatter(_formatter(for_people=False))
        handlers.append(written)
    trickled = _Trickled()
    for handler in handlers:
        handler.addFilter(trickled)
        root.addHandler(handler)
    root.setLevel(level.upper())
    structlog.configure(
        processors=[*_shared(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    structlog.contextvars.bind_contextvars(**fields)
    return lambda: _stop(handlers, tuple(fields))


class _Trickled(logging.Filter):
    """What strangers cause, a few lines a minute. All handlers share one, which decides once on each line."""

    def __init__(self) -> None:
        super().__init__()
        self._trickle = Trickle()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to keep the line; one that follows others which were left out says how many."""
        decided = record.__dict__.get("_kept")
        if decided is None:
            decided = record.__dict__["_kept"] = self._decide(record)
        return bool(decided)

    def _decide(self, record: logging.LogRecord) -> bool:
        said = record.msg
        kind = str(said.get("event")) if isinstance(said, dict) else str(said)
        left_out = self._trickle.pour(kind, record.created)
        if left_out:
            more = {**said, "left_out": left_out} if isinstance(said, dict) else f"{said} ({left_out} more)"
            record.msg = more
        return left_out is not None


def _stop(handlers: list[logging.Handler], fields: tuple[str, ...]) -> None:
    for handler in handlers:
        logging.getLogger().removeHandler(handler)
        handler.close()
    structlog.contextvars.unbind_contextvars(*fields)
    structlog.reset_defaults()


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _formatter(*, for_people: bool) -> logging.Formatter:
    """Redaction comes after tracebacks became text: they quote arguments."""
    last: Processor = structlog.processors.JSONRenderer()
    if for_people:
        last = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_shared(),
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            redact,
            last,
        ],
    )
