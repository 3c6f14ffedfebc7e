"""HTTP routes by which agents speak: enqueue, reply, ack, nack, extend, incidents that they found."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.api.answers import (
    EnqueuedAnswer,
    ExtendedAnswer,
    RefusedAnswer,
    SentAnswer,
    SettledAnswer,
    ToldAnswer,
)
from gateway.endpoints.actors import acting_agent
from gateway.endpoints.answers import json, sent_answer
from gateway.endpoints.bodies import (
    AckBody,
    EnqueueBatchBody,
    ExtendBody,
    IncidentBody,
    MessageBody,
    NackBody,
    NoQuery,
    ReplyBody,
    decode_enqueue,
)
from gateway.endpoints.desk import LocalDesk
from gateway.endpoints.frames import error_record
from gateway.endpoints.guard import principal_of
from gateway.endpoints.reading import body_of, json_of, query_of, traceparent_of
from gateway.endpoints.requests import extend_of, incident_of, nack_of, reply_of, send_of, settle_of
from gateway.engine.effects import Answer, Extended, Sent, Settled, Told
from gateway.engine.inputs import Nack, Send, Settle
from gateway.runtime import check
from outbox.errors import MeshError
from outbox.ids import AgentId


class MessageRoutes:
    """Each answer comes after the commit that it speaks of."""

    def __init__(self, desk: LocalDesk) -> None:
        self._desk = desk
        self._runtime = desk.runtime

    def routes(self) -> list[Route]:
        """Paths and methods."""
        return [
            Route("/v1/enqueue", self.enqueue, methods=["POST"]),
            Route("/v1/reply", self.reply, methods=["POST"]),
            Route("/v1/incidents", self.incident, methods=["POST"]),
            Route("/v1/ack", self.ack, methods=["POST"]),
            Route("/v1/nack", self.nack, methods=["POST"]),
            Route("/v1/extend", self.extend, methods=["POST"]),
        ]

    async def enqueue(self, request: Request) -> Response:
        """Send one message or many to agents of the mesh: 202, what was not refused is in the outbox."""
        query_of(request, NoQuery)
        body = decode_enqueue(await json_of(request))
        agent = acting_agent(self._desk, principal_of(request), body.agent)
        traced = traceparent_of(request)
        if isinstance(body, EnqueueBatchBody):
            return json(EnqueuedAnswer(await self._send_all(agent, body.envs, traced)), 202)
        sent = await self._runtime.ask(send_of(self._runtime.req(), agent, body, traceparent=traced))
        assert isinstance(sent, Sent)
        return json(sent_answer(sent), 202)

    async def reply(self, request: Request) -> Response:
        """Answer an event of the inbox; the turn is done with it. 202."""
        query_of(request, NoQuery)
        body = await body_of(request, ReplyBody)
        agent = acting_agent(self._desk, principal_of(request), body.agent)
        question = reply_of(
            self._runtime.req(),
            agent,
            body.event_id,
            body.payload,
            body.text,
            lease_id=body.lease_id,
            idempotency_key=body.id,
            type_=body.type,
            schema=body.schema,
            traceparent=body.traceparent if body.traceparent is not None else traceparent_of(request),
            payload_ref=body.payload_ref,
        )
        sent = await self._runtime.ask(question)
        assert isinstance(sent, Sent)
        return json(sent_answer(sent), 202)

    async def incident(self, request: Request) -> Response:
        """Tell every node of an incident that a report found, or of its end: 202, it is in the outbox."""
        query_of(request, NoQuery)
        body = await body_of(request, IncidentBody)
        agent = acting_agent(self._desk, principal_of(request), body.agent)
        told = await self._runtime.ask(incident_of(self._runtime.req(), agent, body))
        assert isinstance(told, Told)
        return json(ToldAnswer(told.event_id, told.duplicate), 202)

    async def ack(self, request: Request) -> Response:
        """End a turn, well or badly."""
        query_of(request, NoQuery)
        body = await body_of(request, AckBody)
        agent = acting_agent(self._desk, principal_of(request), body.agent)
        settle = settle_of(
            self._runtime.req(),
            agent,
            body.event_id,
            lease_id=body.lease_id,
            outcome=body.outcome,
            error=body.error,
        )
        return await self._settle(settle)

    async def nack(self, request: Request) -> Response:
        """Give a turn back."""
        query_of(request, NoQuery)
        body = await body_of(request, NackBody)
        agent = acting_agent(self._desk, principal_of(request), body.agent)
        return await self._settle(
            nack_of(self._runtime.req(), agent, body.event_id, body.lease_id, body.delay_ms)
        )

    async def extend(self, request: Request) -> Response:
        """Keep a turn for longer."""
        query_of(request, NoQuery)
        body = await body_of(request, ExtendBody)
        agent = acting_agent(self._desk, principal_of(request), body.agent)
        extended = await self._runtime.ask(extend_of(self._runtime.req(), agent, body.event_id, body))
        assert isinstance(extended, Extended)
        return json(ExtendedAnswer(extended.event_id, extended.lease_ms))

    async def _send_all(
        self, agent: AgentId, bodies: list[MessageBody], traced: str | None
    ) -> list[SentAnswer | RefusedAnswer]:
        """Each message is sent or refused by itself, in one answer; those that can be, in one commit."""
        outcomes: dict[int, SentAnswer | RefusedAnswer] = {}
        sends: dict[int, Send] = {}
        for place, body in enumerate(bodies):
            try:
                sends[place] = send_of(self._runtime.req(), agent, body, traceparent=traced)
            except MeshError as error:
                outcomes[place] = RefusedAnswer(error_record(error))
        answers = await self._runtime.ask_all(list(sends.values()))
        for place, answer in zip(sends, answers, strict=True):
            outcomes[place] = _outcome(answer)
        return [outcomes[place] for place in range(len(bodies))]

    async def _settle(self, request: Settle | Nack) -> Response:
        settled = await self._runtime.ask(request)
        assert isinstance(settled, Settled)
        return json(SettledAnswer(settled.event_id, settled.duplicate))


def _outcome(answer: Answer) -> SentAnswer | RefusedAnswer:
    try:
        sent = check(answer)
    except MeshError as error:
        return RefusedAnswer(error_record(error))
    assert isinstance(sent, Sent)
    return sent_answer(sent)
