"""What can happen to a message, as data: the steps of each story, and what a report must find in it.

A generated history is many roots that each follow one plan, with nodes, agents and delays drawn at random.
The delays keep clear of every promise: a plan that breaks one breaks it by seconds, the others keep it by
seconds, so that skewed clocks change no verdict.
"""

from enum import StrEnum
from typing import NamedTuple

from outbox.kinds import AckStatus, Kind, Outcome
from outbox.limits import HOPS_MAX
from spark.rules import IncidentClass
from spark.schema import Flag
from spark.tasks import CONTRACT_MISMATCH, TaskKind

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


class Who(StrEnum):
    """A node, as a root sees it."""

    SENDER = "sender"
    RECEIVER = "receiver"
    OTHER = "other"
    """A third node: no owner, and sometimes asked nevertheless."""


class Step(NamedTuple):
    """One event of a story."""

    kind: str
    by: Who
    after_ms: tuple[int, int]
    """Shortest and longest time since the root was created."""
    about: int = 0
    """Which event it speaks of: 0 the root, else the number of a step of this plan."""
    to: Who = Who.SENDER
    fields: tuple[tuple[str, str | int], ...] = ()
    """Columns with one value."""
    offsets: tuple[tuple[str, int], ...] = ()
    """Columns with a time: milliseconds after the root was created."""
    to_group: bool = False
    """It goes to an agent of the receiver and to one of the third node, and names neither."""


class Plan(NamedTuple):
    """One story."""

    name: str
    weight: int
    """Of 10,000 roots."""
    steps: tuple[Step, ...]
    incidents: tuple[IncidentClass, ...] = ()
    is_task: bool = False
    at: Who | None = None
    """Of a message to a group: the node that the incidents are about."""


def _root(kind: str = Kind.MESSAGE, attempt: int = 1, to: Who = Who.RECEIVER, **fields: str | int) -> Step:
    after = (0, 0) if attempt == 1 else (attempt * 2 * SECOND, attempt * 2 * SECOND)
    return Step(kind, Who.SENDER, after, to=to, fields=(("attempt", attempt), *fields.items()))


def _ack(
    after_ms: tuple[int, int],
    status: AckStatus = AckStatus.ACCEPTED,
    outcome: Outcome = Outcome.OK,
    *,
    by: Who = Who.RECEIVER,
    about: int = 0,
    to: Who = Who.SENDER,
    **fields: str,
) -> Step:
    said = (("status", status), ("outcome", outcome), *fields.items())
    return Step(Kind.ACK, by, after_ms, about=about, to=to, fields=said)


def _group() -> Step:
    return _root()._replace(to_group=True)


def _done(after_ms: tuple[int, int], outcome: Outcome = Outcome.OK, by: Who = Who.RECEIVER) -> Step:
    """The turn ended; the agent was handed the event two seconds after it was created, or more."""
    step = _ack(after_ms, AckStatus.PROCESSED, outcome, by=by)
    said = (("error", "the handler died"),) if outcome is Outcome.FAILED else ()
    engaged = (("engagedAt", max(0, after_ms[0] - SECOND)),)
    return step._replace(fields=(*step.fields, *said, ("deliveries", 1)), offsets=engaged)


def _answer(kind: str, after_ms: tuple[int, int], **fields: str | int) -> Step:
    return Step(kind, Who.RECEIVER, after_ms, fields=tuple(fields.items()))


def _taken(about: int, after_ms: tuple[int, int]) -> Step:
    """The sender's node has an answer on its disk."""
    return _ack(after_ms, by=Who.SENDER, about=about, to=Who.RECEIVER)


SOON = (5, 3 * SECOND)
TURN = (5 * SECOND, 40 * SECOND)
REPLY = (41 * SECOND, 50 * SECOND)
HAVE_REPLY = (55 * SECOND, 58 * SECOND)
LATER = (8 * MINUTE, 20 * MINUTE)

_SENT = _root()
_ACCEPTED = _ack(SOON)
_HALF = (_group(), _ACCEPTED, _done(TURN))
_OTHER_HALF = _ack(SOON, by=Who.OTHER)
_TASK = _root(TaskKind.CREATE, version="^1", skillVersion="1.0.0")
_TAKE_ON = _answer(TaskKind.ACCEPT, TURN, version="1.4.2", skillVersion="2.1.0")
_ON_IT = (_TASK, _ACCEPTED, _TAKE_ON, _taken(2, HAVE_REPLY))
_END = (6 * MINUTE, 6 * MINUTE + 30 * SECOND)
_HAVE_END = (6 * MINUTE + 35 * SECOND, 6 * MINUTE + 50 * SECOND)


def _promising(eta_ms: int) -> tuple[Step, ...]:
    return (_TASK, _ACCEPTED, _TAKE_ON._replace(offsets=(("etaAt", eta_ms),)), _taken(2, HAVE_REPLY))


def _failed(error_class: str) -> tuple[Step, ...]:
    ended = _answer(TaskKind.FAILED, _END, errorClass=error_class, error="no", skillVersion="2.1.0")
    return (*_ON_IT, ended, _taken(4, _HAVE_END))


PLANS: tuple[Plan, ...] = (
    Plan("processed", 3880, (_SENT, _ACCEPTED, _done(TURN))),
    Plan("replied", 3600, (_SENT, _ACCEPTED, _done(TURN), _answer(Kind.REPLY, REPLY), _taken(3, HAVE_REPLY))),
    Plan(
        "retried",
        300,
        (_SENT, _root(attempt=2), _ack((5 * SECOND, 7 * SECOND)), _done((8 * SECOND, 40 * SECOND))),
    ),
    Plan(
        "rerouted",
        100,
        (
            _root(to=Who.OTHER),
            _ack(SOON, AckStatus.PROCESSED, Outcome.REFUSED, by=Who.OTHER, error="not_owner"),
            _root(attempt=2),
            _ack((5 * SECOND, 7 * SECOND)),
            _done((8 * SECOND, 40 * SECOND)),
        ),
    ),
    Plan("repeated ACK", 100, (_SENT, _ACCEPTED, _ack((4 * SECOND, 9 * SECOND)), _done(TURN), _done(REPLY))),
    Plan(
        "stray ACK", 20, (_SENT, _ack(SOON, by=Who.OTHER), _ACCEPTED, _done(TURN), _done(SOON, by=Who.OTHER))
    ),
    Plan("clock never set", 10, (_SENT, _ack(SOON, flags=Flag.CREATED_AT), _done(TURN))),
    Plan("signal", 400, (Step(Kind.SIGNAL, Who.SENDER, (0, 0)),)),
    Plan(
        "task",
        900,
        (
            *_promising(15 * MINUTE),
            _answer(TaskKind.UPDATE, (4 * MINUTE, 4 * MINUTE + 30 * SECOND)),
            _taken(4, (4 * MINUTE + 35 * SECOND, 4 * MINUTE + 50 * SECOND)),
            _answer(TaskKind.COMPLETE, _END, skillVersion="2.1.0"),
            _taken(6, _HAVE_END),
        ),
        is_task=True,
    ),
    Plan("group", 40, (*_HALF, _OTHER_HALF, _done(TURN, by=Who.OTHER))),
    Plan("group with a black hole", 10, _HALF, (IncidentClass.NEVER_ACCEPTED,), at=Who.OTHER),
    Plan(
        "group with a silent agent",
        10,
        (*_HALF, _OTHER_HALF),
        (IncidentClass.ACCEPTED_NOT_PROCESSED,),
        at=Who.OTHER,
    ),
    Plan(
        "group with a failed turn",
        10,
        (*_HALF, _OTHER_HALF, _done(TURN, Outcome.FAILED, by=Who.OTHER)),
        (IncidentClass.TURN_FAILED,),
        at=Who.OTHER,
    ),
    Plan(
        "group given up at one",
        10,
        (
            *_HALF,
            Step(
                Kind.DEAD_LETTER,
                Who.SENDER,
                (HOUR, 2 * HOUR),
                to=Who.OTHER,
                fields=(("reason", "expired"), ("attempts", 1)),
            ),
        ),
        (IncidentClass.DEAD_LETTER,),
        at=Who.OTHER,
    ),
    Plan("black hole", 40, (_SENT,), (IncidentClass.NEVER_ACCEPTED,)),
    Plan(
        "given up",
        40,
        (
            _SENT,
            _root(attempt=2),
            _root(attempt=3),
            Step(
                Kind.DEAD_LETTER,
                Who.SENDER,
                (HOUR, 2 * HOUR),
                fields=(("reason", "expired"), ("attempts", 3)),
            ),
        ),
        (IncidentClass.DEAD_LETTER,),
    ),
    Plan("turn failed", 60, (_SENT, _ACCEPTED, _done(TURN, Outcome.FAILED)), (IncidentClass.TURN_FAILED,)),
    Plan("silent agent", 50, (_SENT, _ACCEPTED), (IncidentClass.ACCEPTED_NOT_PROCESSED,)),
    Plan("slow agent", 60, (_SENT, _ACCEPTED, _done(LATER)), (IncidentClass.ACCEPTED_NOT_PROCESSED,)),
    Plan(
        "slow link",
        60,
        (_SENT, _ack((2 * MINUTE, 3 * MINUTE)), _done((4 * MINUTE, 5 * MINUTE))),
        (IncidentClass.LATE_ACK,),
    ),
    Plan(
        "done after all",
        20,
        (
            _SENT,
            _ACCEPTED,
            Step(Kind.DEAD_LETTER, Who.SENDER, (HOUR, HOUR), fields=(("reason", "silence"), ("attempts", 1))),
            _done((2 * HOUR, 3 * HOUR)),
        ),
        (IncidentClass.DEAD_LETTER, IncidentClass.ANSWERED_AFTER_DEAD_LETTER),
    ),
    Plan(
        "late task",
        40,
        (*_promising(5 * MINUTE), _answer(TaskKind.COMPLETE, _END), _taken(4, _HAVE_END)),
        (IncidentClass.ETA_BREACH,),
        is_task=True,
    ),
    Plan("task gone quiet", 40, _promising(365 * 24 * HOUR), (IncidentClass.PROGRESS_BREACH,), is_task=True),
    Plan(
        "task nobody took on", 20, (_TASK, _ACCEPTED), (IncidentClass.ACCEPTED_NOT_PROCESSED,), is_task=True
    ),
    Plan("failed task", 40, _failed("crashed"), (IncidentClass.TASK_FAILED,), is_task=True),
    Plan("wrong result", 30, _failed(CONTRACT_MISMATCH), (IncidentClass.CONTRACT_MISMATCH,), is_task=True),
    Plan(
        "lost on the way",
        30,
        (
            _root(to=Who.OTHER),
            _ack(SOON, AckStatus.PROCESSED, Outcome.REFUSED, by=Who.OTHER, error="not_owner"),
            _root(attempt=2, to=Who.OTHER),
            _ack(
                (5 * SECOND, 6 * SECOND),
                AckStatus.PROCESSED,
                Outcome.REFUSED,
                by=Who.OTHER,
                error="not_owner",
            ),
            _root(attempt=3),
            _ack((7 * SECOND, 9 * SECOND)),
            _done((10 * SECOND, 40 * SECOND)),
        ),
        (IncidentClass.ROUTING_MISS_REPEATED,),
    ),
    Plan(
        "engaged twice",
        20,
        (
            _SENT,
            _ACCEPTED,
            _root(attempt=2, to=Who.OTHER),
            _ack((9 * SECOND, 12 * SECOND), by=Who.OTHER),
            _done(TURN),
            _done((13 * SECOND, 40 * SECOND), by=Who.OTHER),
        ),
        (IncidentClass.DUPLICATE_ENGAGEMENT,),
    ),
    Plan(
        "loop",
        30,
        (_root(hops=HOPS_MAX), _ACCEPTED, _done(TURN)),
        (IncidentClass.LOOP,),
    ),
    Plan(
        "newer version",
        30,
        (Step("weather_report", Who.SENDER, (0, 0), fields=(("flags", Flag.UNKNOWN_KIND),)),),
        (IncidentClass.UNKNOWN_KIND,),
    ),
)
