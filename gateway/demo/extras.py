"""What the demo adds to every conversation: a burst, and one of each kind of trouble.

The extras have agents of their own, so that the conversation's stay as they are in the file.
"""

from collections.abc import Collection
from enum import StrEnum
from string import ascii_lowercase

import msgspec

from gateway.demo.conversation import Conversation
from gateway.demo.limits import BURST
from outbox.ids import AgentId, NodeId
from outbox.records import DeliveryState
from spark.rules import IncidentClass


class Part(StrEnum):
    """Who plays what in the extras."""

    HERALD = "herald"
    """Sends all of them."""
    PORTER = "porter"
    """Gets the burst, on the node that is killed."""
    HERMIT = "hermit"
    """Never takes a turn."""
    CLUMSY = "clumsy"
    """Fails every turn."""
    DEPARTED = "departed"
    """Was added and removed: known, and without owner."""


class Trouble(StrEnum):
    """Planted messages that must not end well."""

    UNANSWERED = "unanswered"
    FAILING = "failing"
    OWNERLESS = "ownerless"


class Planted(msgspec.Struct, frozen=True):
    """What a planted message must come to."""

    part: Part
    state: DeliveryState
    incident: IncidentClass
    text: str


PLANTED: dict[Trouble, Planted] = {
    Trouble.UNANSWERED: Planted(
        Part.HERMIT, DeliveryState.ACCEPTED, IncidentClass.ACCEPTED_NOT_PROCESSED, "Are you there?"
    ),
    Trouble.FAILING: Planted(
        Part.CLUMSY,
        DeliveryState.PROCESSED,
        IncidentClass.TURN_FAILED,
        "Please run the migration on staging.",
    ),
    Trouble.OWNERLESS: Planted(
        Part.DEPARTED, DeliveryState.DEAD_LETTER, IncidentClass.DEAD_LETTER, "Can you hand over your notes?"
    ),
}

FAILURE = "migration 0042 failed: column tide_offset exists already"
"""What the clumsy agent says of its turn."""


class Extras(msgspec.Struct, frozen=True, kw_only=True):
    """The extras of one run: names that the conversation does not use, and their nodes."""

    names: dict[Part, AgentId]
    homes: dict[Part, NodeId]
    misspelt: str
    """A name that nobody has and that looks like one that somebody has."""

    @property
    def burst(self) -> tuple[str, ...]:
        """The texts of the burst."""
        return tuple(f"reading {n:03d} of the gauge at the north pier" for n in range(1, BURST + 1))


def extras(conversation: Conversation, *, seed: NodeId, other: NodeId, killed: NodeId) -> Extras:
    """Cast the extras around a conversation; ``killed`` is the node that will crash."""
    names: dict[Part, AgentId] = {}
    for part in Part:
        names[part] = _free(part, {*conversation.homes, *names.values()})
    homes = {
        Part.HERALD: seed,
        Part.PORTER: killed,
        Part.HERMIT: killed,
        Part.CLUMSY: other,
        Part.DEPARTED: other,
    }
    taken = {*conversation.homes, *names.values()}
    return Extras(names=names, homes=homes, misspelt=_misspelt(next(iter(conversation.homes)), taken))


def _free(name: str, taken: Collection[str]) -> AgentId:
    candidates = (name, *(f"{name}-{n}" for n in range(2, len(taken) + 3)))
    return AgentId(next(candidate for candidate in candidates if candidate not in taken))


def _misspelt(name: str, taken: Collection[str]) -> str:
    """The name with its last letter lost or wrong, whichever is nobody's."""
    stem = name[:-1] or name
    wrong = (f"{stem[:61]}{first}{second}" for first in ascii_lowercase for second in ascii_lowercase)
    return next(candidate for candidate in (stem, f"{stem}x", *wrong) if candidate not in taken)
