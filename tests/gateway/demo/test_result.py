"""The result shows people names where the verdict has ids."""

from msgspec.structs import replace

from gateway.demo.result import incidents_of, kinds_of
from gateway.demo.verdict import judge
from gateway.judging.story import Found
from spark.rules import IncidentClass
from tests.gateway.judging.stories import ASKED, FAILING, UNANSWERED, case, mesh


def test_incidents_name_sender_recipient_and_why():
    shown = {incident.event_id: incident for incident in incidents_of(judge(case()), mesh())}
    assert shown[FAILING].what == "al to clumsy"
    assert shown[FAILING].detail == "no"
    assert shown[UNANSWERED].detail == "accepted, no answer"
    assert all(incident.planted for incident in shown.values())


def test_what_the_crash_caused_comes_after_what_was_planted():
    verdict = judge(case())
    late = Found(IncidentClass.ACCEPTED_NOT_PROCESSED, ASKED)
    shown = incidents_of(replace(verdict, incidents=(late, *verdict.incidents)), mesh())
    assert [incident.planted for incident in shown] == [True, True, True, False]
    assert shown[-1].detail == "answered late"


def test_messages_and_replies_are_counted_apart():
    assert kinds_of(judge(case()).states) == (4, 1)
