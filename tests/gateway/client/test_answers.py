"""What a gateway answers, and what is no answer of one."""

from collections.abc import Callable

import pytest

from gateway.api.answers import ExtendedAnswer, Recipient, SentAnswer, SettledAnswer
from gateway.api.frames import ServerFrame
from gateway.client.answers import extended_answer, sent_answer, settled_answer
from gateway.errors import Unreachable
from outbox.ids import AgentId, EventId, NodeId

EVENT, NODE = EventId("evt_1"), NodeId("vps")
TO = Recipient(AgentId("bob"), NODE)


def test_frames_become_answers() -> None:
    sent = ServerFrame(event_id=EVENT, thread_id="t", to=TO, duplicate=False, nodes=(NODE,))
    assert sent_answer(sent) == SentAnswer(EVENT, "t", TO, duplicate=False, nodes=(NODE,))
    assert settled_answer(ServerFrame(event_id=EVENT, duplicate=True)) == SettledAnswer(EVENT, duplicate=True)
    assert extended_answer(ServerFrame(event_id=EVENT, lease_ms=5)) == ExtendedAnswer(EVENT, 5)


@pytest.mark.parametrize("answer", [sent_answer, settled_answer, extended_answer])
def test_an_answer_that_lacks_a_field_is_of_no_gateway(answer: Callable[[ServerFrame], object]) -> None:
    with pytest.raises(Unreachable, match="lacks a field"):
        answer(ServerFrame(event_id=EVENT))
