"""A store that is two: what the journal on SQLite answers is held against what its twin in memory says."""

from collections.abc import Callable, Iterator, Sequence
from operator import methodcaller
from typing import Any

from gateway.harness.sim.disk import Disk
from outbox.errors import MeshError, StorageFull
from outbox.journal import Journal
from outbox.reader import JournalReader
from outbox.records import DeliveryState

_ALL = 1_000_000
_ALL_BYTES = 1 << 40
_SHOWN = 300
"""Characters of an answer in a finding."""

_BOUNDS = frozenset({"quiet_until_ms"})
"""Answers that may be too early."""

Differs = Callable[[str], None]
"""Hears how the two answers to one question differ."""


class Compared:
    """Implements ``outbox.store.Store``: each call goes to the journal, then to the twin.

    The world goes on with what the journal says. A call that the journal refuses for want of room was never
    made: the twin does not hear of it, and its owner rolls back both.
    """

    def __init__(self, journal: Journal | JournalReader, twin: Disk, differs: Differs) -> None:
        self._journal = journal
        self._twin = twin
        self._differs = differs

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A method of both, from its first call on."""
        ask, ask_twin = getattr(self._journal, name), getattr(self._twin, name)

        def both(*args: Any, **named: Any) -> Any:
            answer = _answer(ask, args, named)
            if isinstance(answer, StorageFull):
                raise answer
            expected = _answer(ask_twin, args, named)
            same = _never_later if name in _BOUNDS else _same
            if not same(answer, expected):
                self._differs(_difference(f"{name}{_words(args, named)}", answer, expected))
            if isinstance(answer, MeshError):
                raise answer
            return answer

        setattr(self, name, both)
        return both


def compare_all(journal: Journal | JournalReader, twin: Disk) -> Iterator[str]:
    """Everything that is in two stores, and how it differs."""
    who = type(journal).__name__
    for what, question in _QUESTIONS.items():
        answer, expected = question(journal), question(twin)
        if not _same(answer, expected):
            yield _difference(f"{who}: {what}", answer, expected)


def _answer(ask: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> Any:
    try:
        return ask(*args, **named)
    except MeshError as error:
        return error


def _same(answer: Any, expected: Any) -> bool:
    if isinstance(answer, MeshError):
        return type(answer) is type(expected)
    return bool(answer == expected)


def _never_later(at_ms: int | None, known_ms: int | None) -> bool:
    return known_ms is None or (at_ms is not None and at_ms <= known_ms)


def _words(args: Sequence[Any], named: dict[str, Any]) -> str:
    words = [*map(repr, args), *(f"{name}={value!r}" for name, value in named.items())]
    return f"({', '.join(words)})"[:_SHOWN]


def _difference(what: str, answer: Any, expected: Any) -> str:
    if isinstance(answer, list) and isinstance(expected, list):
        shared = [row for row in answer if row in expected]
        lacks = [row for row in expected if row not in shared]
        answer = [row for row in answer if row not in shared] or f"{len(answer)} rows, in another order"
        expected = lacks or f"{len(expected)} rows"
    return f"{what}: the journal says {repr(answer)[:_SHOWN]}, its twin {repr(expected)[:_SHOWN]}"


def _own_entries(store: Any) -> Any:
    return store.read(store.beginning(), _ALL, _ALL_BYTES)


def _inboxes(store: Any) -> Any:
    return [store.inbox(agent.name, done=True, limit=_ALL) for agent in store.agents()]


def _by_key(store: Any) -> Any:
    owed = [store.delivery(row.event_id, row.node) for row in store.deliveries(tuple(DeliveryState), _ALL)]
    turns = [store.received(row.source, row.event_id, row.to_agent) for row in store.open_turns()]
    return [*owed, *turns, *(store.signed_cursor(node) for node in store.cursors())]


_QUESTIONS: dict[str, Callable[[Any], Any]] = {
    **{
        name: methodcaller(name)
        for name in (
            *("identity", "head", "shown", "floor", "size", "ended_epochs", "cursors", "doubts", "readers"),
            *("agents", "copies", "blobs", "errands", "quarantined"),
            *("open_turns", "count_received", "count_deliveries", "count_unaccepted"),
        )
    },
    "incidents": methodcaller("incidents", open_only=False),
    "deliveries": methodcaller("deliveries", tuple(DeliveryState), _ALL),
    "entries": _own_entries,
    "inboxes": _inboxes,
    "rows by their keys": _by_key,
}
