"""Bodies become inputs of the engine."""

import msgspec
import pytest

from gateway.endpoints.bodies import EnqueueBody, EnvelopeBody, ExtendBody
from gateway.endpoints.errors import BadRequest
from gateway.endpoints.frames import ExtendFrame
from gateway.endpoints.requests import extend_of, nack_of, reply_of, send_of, settle_of
from gateway.engine.inputs import Extend, Nack, Send, Settle
from outbox.errors import InvalidId
from outbox.ids import AgentId, EventId
from outbox.kinds import Outcome

JEN, X = AgentId("jen"), "evt_" + "0" * 32


def test_an_envelope_and_a_text_are_sends() -> None:
    raw = msgspec.Raw(b"[1]")
    envelope = EnvelopeBody(payload=raw, id="k", type="t", thread="th", priority=0, expires_in_ms=5)
    assert send_of(1, JEN, EnqueueBody(to="bob", envelope=envelope)) == Send(
        req=1,
        agent=JEN,
        to="bob",
        payload=raw,
        type="t",
        thread_id="th",
        idempotency_key="k",
        expires_in_ms=5,
        priority=0,
    )
    assert bytes(send_of(1, JEN, EnqueueBody(to="bob", text="")).payload) == b'{"text":""}'


def test_both_or_neither_is_refused() -> None:
    envelope = EnvelopeBody(payload=msgspec.Raw(b"1"))
    for body in (EnqueueBody(to="bob"), EnqueueBody(to="bob", text="x", envelope=envelope)):
        with pytest.raises(BadRequest):
            send_of(1, JEN, body)
    for payload, text in ((msgspec.UNSET, None), (msgspec.Raw(b"1"), "x")):
        with pytest.raises(BadRequest):
            reply_of(1, JEN, X, payload, text, lease_id=None, idempotency_key=None, type_=None)


def test_answers_to_turns() -> None:
    assert settle_of(1, JEN, X, lease_id="l", outcome="failed", error="e") == Settle(
        req=1, agent=JEN, event_id=EventId(X), lease_id="l", outcome=Outcome.FAILED, error="e"
    )
    assert nack_of(2, JEN, X, "l", 5) == Nack(req=2, agent=JEN, event_id=EventId(X), lease_id="l", delay_ms=5)
    given = {"lease_id": "l", "lease_ms": 9, "eta_at": "t", "plan_summary": "p"}
    asked = Extend(req=3, agent=JEN, event_id=EventId(X), **given)
    assert extend_of(3, JEN, X, ExtendBody(event_id=X, **given)) == asked
    assert extend_of(3, JEN, X, ExtendFrame(extend=X, **given)) == asked
    reply = reply_of(4, JEN, X, msgspec.UNSET, "yes", lease_id=None, idempotency_key="k", type_=None)
    assert (bytes(reply.payload), reply.idempotency_key) == (b'{"text":"yes"}', "k")


def test_an_event_id_is_checked() -> None:
    with pytest.raises(InvalidId):
        nack_of(1, JEN, "evt_x", "l", 0)
