"""What kinds of events exist and which rules hold for each: one table.

Source: envelope and ACK rules of ``docs/PROTOCOL.md``.
"""

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """The kinds that this version makes and understands; others are carried and stored, never engaged."""

    MESSAGE = "message"
    ACK = "ack"
    REPLY = "reply"
    SIGNAL = "signal"
    DEAD_LETTER = "dead_letter"


class Rule(NamedTuple):
    """How the mesh treats one kind."""

    accepted: bool
    """The receiver answers ``ack:accepted`` once the event is on its disk."""
    processed: bool
    """The receiver answers ``ack:processed`` once the agent's turn is done."""
    answers: bool
    """``corrId`` is required: the event answers another one."""
    wakes: bool
    """The event is handed to an agent."""


RULES: dict[Kind, Rule] = {
    #                      accepted processed answers wakes
    Kind.MESSAGE: Rule(True, True, False, True),
    Kind.REPLY: Rule(True, False, True, True),
    Kind.ACK: Rule(False, False, True, False),
    Kind.SIGNAL: Rule(False, False, False, False),
    Kind.DEAD_LETTER: Rule(False, False, True, False),
}


PROCESSED = frozenset(kind for kind, rule in RULES.items() if rule.processed)
"""Kinds whose end somebody waits for."""


class AckStatus(StrEnum):
    """The two levels of an ACK."""

    ACCEPTED = "accepted"
    PROCESSED = "processed"


class Outcome(StrEnum):
    """How an acknowledged event ended."""

    OK = "ok"
    FAILED = "failed"
    REFUSED = "refused"


def known_kind(text: str) -> Kind | None:
    """The kind of that name, or None for a kind of a newer version."""
    return _KINDS.get(text)


_KINDS = {str(kind): kind for kind in Kind}
