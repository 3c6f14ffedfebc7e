"""Which messages broke a promise: rules as data, over the lifecycle table.

A condition is SQL text over columns of that table, with ``{as_of}`` for the moment of judgement. It keeps to
what every SQL engine understands, so that batch, stream and other engines run the same text.

Version 3 of the rules since 2026-11: events to several agents are judged by node (version 2 judged them as a
whole, version 1 knew the first four classes). A changed condition is a new version, so that old reports can
be explained.
"""

from enum import StrEnum
from typing import NamedTuple

from outbox.limits import HOPS_MAX
from outbox.records import DeliveryState
from spark.tasks import CONTRACT_MISMATCH

RULES_VERSION = 3


class IncidentClass(StrEnum):
    """What went wrong."""

    NEVER_ACCEPTED = "never_accepted"
    """Nobody has it on disk, and the time for that is over."""
    DEAD_LETTER = "dead_letter"
    """The sender gave it up."""
    TURN_FAILED = "turn_failed"
    """The agent, or its handler, failed; closed by a reply that came all the same."""
    ACCEPTED_NOT_PROCESSED = "accepted_not_processed"
    """On disk at the receiver, and no answer in time; closed by a late one."""
    LATE_ACK = "late_ack"
    """It reached the other disk, and later than promised."""
    ANSWERED_AFTER_DEAD_LETTER = "answered_after_dead_letter"
    """Done there, and given up here: the two sides tell different stories."""
    ETA_BREACH = "eta_breach"
    """A task was not done when its agent said it would be; closed when it is done."""
    PROGRESS_BREACH = "progress_breach"
    """A task's agent said nothing for too long; closed when it is done."""
    TASK_FAILED = "task_failed"
    """A task's agent gave it up."""
    CONTRACT_MISMATCH = "contract_mismatch"
    """A task's result is not what its capability promises."""
    ROUTING_MISS_REPEATED = "routing_miss_repeated"
    """Sent more than once to a node that does not own the recipient; closed when somebody accepts it."""
    DUPLICATE_ENGAGEMENT = "duplicate_engagement"
    """Agents of two nodes were handed the same event."""
    LOOP = "loop"
    """Answers to answers, up to the bound where gateways stop them."""
    SEQ_GAP = "seq_gap"
    """Entries of an outbox are missing in the lake."""
    FORK = "fork"
    """Two copies of one outbox disagree about an entry."""
    CLOCK_SKEW = "clock_skew"
    """ACKs of one node are older than what they answer."""
    UNKNOWN_KIND = "unknown_kind"
    """Events of a kind that this version does not know."""


class Severity(StrEnum):
    """How soon somebody should look. The alphabet happens to order them."""

    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"


class Rule(NamedTuple):
    """When a lifecycle row is an incident, since when and until when."""

    severity: Severity
    condition: str
    opened_at: str
    closed_at: str = "cast(null as timestamp)"
    waits: bool = False
    """Whether it can come of a node's being away."""


_ALIVE = f"state <> '{DeliveryState.DEAD_LETTER}'"
_UNFINISHED = "taskState in ('created', 'accepted', 'working')"

RULES: dict[IncidentClass, Rule] = {
    IncidentClass.NEVER_ACCEPTED: Rule(
        Severity.CRITICAL,
        f"state in ('{DeliveryState.EMITTED}', '{DeliveryState.RETRY_PENDING}') and acceptDueAt < {{as_of}}",
        opened_at="acceptDueAt",
        waits=True,
    ),
    IncidentClass.DEAD_LETTER: Rule(
        Severity.CRITICAL, f"state = '{DeliveryState.DEAD_LETTER}'", opened_at="deadAt", waits=True
    ),
    IncidentClass.TURN_FAILED: Rule(
        Severity.MAJOR,
        f"outcome = 'failed' and {_ALIVE}",
        opened_at="processedAt",
        closed_at="case when repliedAt >= processedAt then repliedAt end",
    ),
    IncidentClass.ACCEPTED_NOT_PROCESSED: Rule(
        Severity.MAJOR,
        f"state = '{DeliveryState.ACCEPTED}' and processDueAt < {{as_of}}"
        f" or {_ALIVE} and doneAt > processDueAt",
        opened_at="processDueAt",
        closed_at="doneAt",
        waits=True,
    ),
    IncidentClass.LATE_ACK: Rule(
        Severity.MINOR,
        "acceptedAt > acceptDueAt",
        opened_at="acceptDueAt",
        closed_at="acceptedAt",
        waits=True,
    ),
    IncidentClass.ANSWERED_AFTER_DEAD_LETTER: Rule(
        Severity.MAJOR,
        f"state = '{DeliveryState.DEAD_LETTER}' and (outcome = 'ok' or isAnswered)",
        opened_at="doneAt",
    ),
    IncidentClass.ETA_BREACH: Rule(
        Severity.MAJOR,
        f"{_ALIVE} and taskState is not null"
        f" and (finishedAt > completeDueAt or {_UNFINISHED} and completeDueAt < {{as_of}})",
        opened_at="completeDueAt",
        closed_at="finishedAt",
        waits=True,
    ),
    IncidentClass.PROGRESS_BREACH: Rule(
        Severity.MAJOR,
        f"{_ALIVE} and taskState is not null"
        f" and (finishedAt > progressDueAt or {_UNFINISHED} and progressDueAt < {{as_of}})",
        opened_at="progressDueAt",
        closed_at="finishedAt",
        waits=True,
    ),
    IncidentClass.TASK_FAILED: Rule(
        Severity.MAJOR,
        f"taskState = 'failed' and coalesce(errorClass, '') <> '{CONTRACT_MISMATCH}'",
        opened_at="failedAt",
    ),
    IncidentClass.CONTRACT_MISMATCH: Rule(
        Severity.MAJOR, f"taskState = 'failed' and errorClass = '{CONTRACT_MISMATCH}'", opened_at="failedAt"
    ),
    IncidentClass.ROUTING_MISS_REPEATED: Rule(
        Severity.MAJOR, "misroutedTwice", opened_at="createdAt", closed_at="acceptedAt"
    ),
    IncidentClass.DUPLICATE_ENGAGEMENT: Rule(
        Severity.MAJOR, "otherEngagedNode is not null", opened_at="processedAt"
    ),
    IncidentClass.LOOP: Rule(Severity.MAJOR, f"hops >= {HOPS_MAX}", opened_at="createdAt"),
}
"""The classes that one lifecycle row can show."""

STREAM_RULES: dict[IncidentClass, Severity] = {
    IncidentClass.SEQ_GAP: Severity.CRITICAL,
    IncidentClass.FORK: Severity.CRITICAL,
    IncidentClass.CLOCK_SKEW: Severity.MINOR,
    IncidentClass.UNKNOWN_KIND: Severity.MINOR,
}
"""The classes that outboxes show and no single message; the modules of their tables have the conditions."""
