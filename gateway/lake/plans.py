"""What can happen to a message, as data: the steps of each story, and what a report must find in it.

A generated history is many roots that each follow one plan, with nodes, agents and delays drawn at random.
"""

from typing import NamedTuple

from gateway.lake.steps import (
    HAVE_REPLY,
    HOUR,
    LATER,
    MINUTE,
    REPLY,
    SECOND,
    SOON,
    TURN,
    Step,
    Who,
    ack,
    answer,
    done,
    group,
    root,
    taken,
)
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.limits import HOPS_MAX
from spark.rules import IncidentClass
from spark.schema import Flag
from spark.tasks import CONTRACT_MISMATCH, TaskKind


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


_SENT = root()
_ACCEPTED = ack(SOON)
_HALF = (group(), _ACCEPTED, done(TURN))
_OTHER_HALF = ack(SOON, by=Who.OTHER)
_TASK = root(TaskKind.CREATE, version="^1", skillVersion="1.0.0")
_TAKE_ON = answer(TaskKind.ACCEPT, TURN, version="1.4.2", skillVersion="2.1.0")
_ON_IT = (_TASK, _ACCEPTED, _TAKE_ON, taken(2, HAVE_REPLY))
_END = (6 * MINUTE, 6 * MINUTE + 30 * SECOND)
_HAVE_END = (6 * MINUTE + 35 * SECOND, 6 * MINUTE + 50 * SECOND)


def _promising(eta_ms: int) -> tuple[Step, ...]:
    return (_TASK, _ACCEPTED, _TAKE_ON._replace(offsets=(("etaAt", eta_ms),)), taken(2, HAVE_REPLY))


def _failed(error_class: str) -> tuple[Step, ...]:
    ended = answer(TaskKind.FAILED, _END, errorClass=error_class, error="no", skillVersion="2.1.0")
    return (*_ON_IT, ended, taken(4, _HAVE_END))


PLANS: tuple[Plan, ...] = (
    Plan("processed", 3880, (_SENT, _ACCEPTED, done(TURN))),
    Plan("replied", 3600, (_SENT, _ACCEPTED, done(TURN), answer(Kind.REPLY, REPLY), taken(3, HAVE_REPLY))),
    Plan(
        "retried",
        300,
        (_SENT, root(attempt=2), ack((5 * SECOND, 7 * SECOND)), done((8 * SECOND, 40 * SECOND))),
    ),
    Plan(
        "rerouted",
        100,
        (
            root(to=Who.OTHER),
            ack(SOON, AckStatus.PROCESSED, Outcome.REFUSED, by=Who.OTHER, error="not_owner"),
            root(attempt=2),
            ack((5 * SECOND, 7 * SECOND)),
            done((8 * SECOND, 40 * SECOND)),
        ),
    ),
    Plan("repeated ACK", 100, (_SENT, _ACCEPTED, ack((4 * SECOND, 9 * SECOND)), done(TURN), done(REPLY))),
    Plan("stray ACK", 20, (_SENT, ack(SOON, by=Who.OTHER), _ACCEPTED, done(TURN), done(SOON, by=Who.OTHER))),
    Plan("clock never set", 10, (_SENT, ack(SOON, flags=Flag.CREATED_AT), done(TURN))),
    Plan("signal", 400, (Step(Kind.SIGNAL, Who.SENDER, (0, 0)),)),
    Plan(
        "task",
        900,
        (
            *_promising(15 * MINUTE),
            answer(TaskKind.UPDATE, (4 * MINUTE, 4 * MINUTE + 30 * SECOND)),
            taken(4, (4 * MINUTE + 35 * SECOND, 4 * MINUTE + 50 * SECOND)),
            answer(TaskKind.COMPLETE, _END, skillVersion="2.1.0"),
            taken(6, _HAVE_END),
        ),
        is_task=True,
    ),
    Plan("group", 40, (*_HALF, _OTHER_HALF, done(TURN, by=Who.OTHER))),
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
        (*_HALF, _OTHER_HALF, done(TURN, Outcome.FAILED, by=Who.OTHER)),
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
            root(attempt=2),
            root(attempt=3),
            Step(
                Kind.DEAD_LETTER,
                Who.SENDER,
                (HOUR, 2 * HOUR),
                fields=(("reason", "expired"), ("attempts", 3)),
            ),
        ),
        (IncidentClass.DEAD_LETTER,),
    ),
    Plan("turn failed", 60, (_SENT, _ACCEPTED, done(TURN, Outcome.FAILED)), (IncidentClass.TURN_FAILED,)),
    Plan("silent agent", 50, (_SENT, _ACCEPTED), (IncidentClass.ACCEPTED_NOT_PROCESSED,)),
    Plan("slow agent", 60, (_SENT, _ACCEPTED, done(LATER)), (IncidentClass.ACCEPTED_NOT_PROCESSED,)),
    Plan(
        "slow link",
        60,
        (_SENT, ack((2 * MINUTE, 3 * MINUTE)), done((4 * MINUTE, 5 * MINUTE))),
        (IncidentClass.LATE_ACK,),
    ),
    Plan(
        "done after all",
        20,
        (
            _SENT,
            _ACCEPTED,
            Step(Kind.DEAD_LETTER, Who.SENDER, (HOUR, HOUR), fields=(("reason", "silence"), ("attempts", 1))),
            done((2 * HOUR, 3 * HOUR)),
        ),
        (IncidentClass.DEAD_LETTER, IncidentClass.ANSWERED_AFTER_DEAD_LETTER),
    ),
    Plan(
        "late task",
        40,
        (*_promising(5 * MINUTE), answer(TaskKind.COMPLETE, _END), taken(4, _HAVE_END)),
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
            root(to=Who.OTHER),
            ack(SOON, AckStatus.PROCESSED, Outcome.REFUSED, by=Who.OTHER, error="not_owner"),
            root(attempt=2, to=Who.OTHER),
            ack(
                (5 * SECOND, 6 * SECOND),
                AckStatus.PROCESSED,
                Outcome.REFUSED,
                by=Who.OTHER,
                error="not_owner",
            ),
            root(attempt=3),
            ack((7 * SECOND, 9 * SECOND)),
            done((10 * SECOND, 40 * SECOND)),
        ),
        (IncidentClass.ROUTING_MISS_REPEATED,),
    ),
    Plan(
        "engaged twice",
        20,
        (
            _SENT,
            _ACCEPTED,
            root(attempt=2, to=Who.OTHER),
            ack((9 * SECOND, 12 * SECOND), by=Who.OTHER),
            done(TURN),
            done((13 * SECOND, 40 * SECOND), by=Who.OTHER),
        ),
        (IncidentClass.DUPLICATE_ENGAGEMENT,),
    ),
    Plan(
        "loop",
        30,
        (root(hops=HOPS_MAX), _ACCEPTED, done(TURN)),
        (IncidentClass.LOOP,),
    ),
    Plan(
        "newer version",
        30,
        (Step("weather_report", Who.SENDER, (0, 0), fields=(("flags", Flag.UNKNOWN_KIND),)),),
        (IncidentClass.UNKNOWN_KIND,),
    ),
)
