"""Labels are drawn from keys, and what has others is found."""

import msgspec
import pytest

from gateway.harness.sim.labels import labels_of, mislabelled, promise_of
from outbox.envelope import Event, Trace
from outbox.ids import AgentId, EventId, NodeId
from outbox.kinds import Kind
from outbox.schemaname import check_schema_name
from outbox.timestamps import LATEST_MS
from outbox.traceparent import traceparent

KEYS = [f"m{number}" for number in range(50)]


def sent(key: str | None, **fields: object) -> Event:
    labels = labels_of(key or "")
    event = Event(
        event_id=EventId("evt_1"),
        kind=Kind.MESSAGE,
        source_node_id=NodeId("n1"),
        source_agent_id=AgentId("ann"),
        created_at="2026-11-27T12:00:00.000Z",
        idempotency_key=key,
        schema=labels.schema,
        trace=Trace(traceparent=labels.traceparent),
    )
    return msgspec.structs.replace(event, **fields)


def test_each_mix_of_labels_is_drawn_and_each_may_be_sent() -> None:
    drawn = [labels_of(key) for key in KEYS]
    assert {(one.schema is None, one.traceparent is None) for one in drawn} == {
        (schema, trace) for schema in (True, False) for trace in (True, False)
    }
    for one in drawn:
        if one.schema is not None:
            check_schema_name(one.schema)
        assert one.traceparent is None or traceparent(one.traceparent) == one.traceparent


@pytest.mark.parametrize("key", KEYS[:8])
def test_what_was_sent_is_right_and_anything_else_is_not(key: str) -> None:
    assert mislabelled(sent(key), None) is None
    assert mislabelled(sent(key, schema="other"), None) is not None
    assert mislabelled(sent(key, trace=Trace(traceparent="other")), None) is not None


def test_each_mix_of_promises_is_drawn() -> None:
    drawn = [promise_of(EventId(key)) for key in KEYS]
    assert len({(one.eta_ms is None, one.plan is None) for one in drawn}) == 4
    assert all(0 < one.eta_ms < LATEST_MS for one in drawn if one.eta_ms is not None)


def test_what_has_no_key_is_not_judged() -> None:
    assert mislabelled(sent(None, schema="other"), None) is None


def test_a_reply_is_judged_by_its_question() -> None:
    reply = sent("re-1", kind=Kind.REPLY, trace=Trace(traceparent="t"))
    question = sent("m1", trace=Trace(traceparent="t"))
    assert mislabelled(reply, question) is None
    assert mislabelled(reply, None) is None
    assert mislabelled(reply, sent("m1", trace=Trace())) is not None
