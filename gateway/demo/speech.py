"""What an agent of the demo says: one message or one answer, at its time."""

from heapq import heappop, heappush

import msgspec

from gateway.demo.conversation import Line
from outbox.ids import AgentId, EventId

_PREFIX = "line-"


class Question(msgspec.Struct, frozen=True):
    """The turn that a speech answers."""

    event_id: EventId
    lease_id: str | None
    """None when the turn is over already and the answer follows later."""


class Speech(msgspec.Struct, frozen=True, kw_only=True):
    """Something to say."""

    key: str
    """Its idempotency key: saying it twice says it once."""
    to: AgentId
    text: str
    at_ms: int
    """From the start of the play."""
    question: Question | None = None


def key_of(number: int) -> str:
    """The idempotency key of a conversation's line."""
    return f"{_PREFIX}{number}"


def number_of(key: str | None) -> int | None:
    """The line that a key belongs to; None when it is no line's."""
    digits = (key or "").removeprefix(_PREFIX)
    return int(digits) if key is not None and key.startswith(_PREFIX) and digits.isdecimal() else None


def speech_of(line: Line, question: Question | None = None) -> Speech:
    """A line as something to say."""
    key = key_of(line.number)
    return Speech(key=key, to=line.recipient, text=line.text, at_ms=line.at_ms, question=question)


class Agenda:
    """What one agent has still to say, by time; an entry takes the place of an earlier one with its key.

    The agent says one thing at a time: ``begin`` takes the next one out, ``done`` says that it was heard.
    What was begun and not heard, since the agent died, is said again first.
    """

    def __init__(self) -> None:
        self._due: dict[str, Speech] = {}
        self._order: list[tuple[int, int, str]] = []
        self._added = 0
        self.begun: Speech | None = None

    def add(self, speech: Speech) -> None:
        """Put something on it."""
        self._added += 1
        self._due[speech.key] = speech
        heappush(self._order, (speech.at_ms, self._added, speech.key))

    def next_ms(self) -> int | None:
        """When the next thing is due; None when nothing is left."""
        while self._order and not self._is_current():
            heappop(self._order)
        return self._order[0][0] if self._order else None

    def begin(self) -> Speech:
        """Take out what is due first."""
        assert self.next_ms() is not None
        self.begun = self._due.pop(heappop(self._order)[2])
        return self.begun

    def done(self) -> None:
        """It was said, and a gateway has it."""
        self.begun = None

    def forget_turns(self) -> None:
        """The agent died: answers under a lease are dropped, since their turns come back as resumed ones."""
        self._due = {key: speech for key, speech in self._due.items() if not _is_leased(speech)}

    def _is_current(self) -> bool:
        at_ms, _, key = self._order[0]
        return key in self._due and self._due[key].at_ms == at_ms


def _is_leased(speech: Speech) -> bool:
    return speech.question is not None and speech.question.lease_id is not None
