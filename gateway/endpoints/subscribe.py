"""``WS /v1/subscribe``: an agent's turns, under its credit, and all that it has to say.

Two owners share a socket: one reads frames and puts requests into the engine's queue, one sends what there is
to send, answers and turns, in one write. Nothing piles up: turns are bounded by credit, requests without a
sent answer by ``RequestsOpen`` (beyond it the socket is not read), and a reader that takes nothing is let go,
which a third sees to.
"""

import asyncio
from functools import partial
from itertools import chain
from typing import NamedTuple

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from auth.scopes import may_act_as
from gateway.api.answers import Recipient
from gateway.api.frames import OkFrame, ReqId
from gateway.crashpoint import CrashPoint, crashpoint
from gateway.endpoints.bodies import SubscribeQuery
from gateway.endpoints.desk import LocalDesk
from gateway.endpoints.errors import BadRequest, Forbidden, SubscriptionEnded
from gateway.endpoints.frames import (
    AckFrame,
    BadClientFrame,
    ClientFrame,
    CreditFrame,
    EnqueueFrame,
    ExtendFrame,
    NackFrame,
    ReplyFrame,
    RequestFrame,
    deliver_text,
    error_frame,
    frame_text,
    frames_of,
    messages_of,
    read_frame,
)
from gateway.endpoints.guard import principal_of
from gateway.endpoints.limits import (
    SEND_WITHIN_S,
    SOCKET_CREDIT_MAX,
    SOCKET_REQUEST_CHARS_MAX,
    SOCKET_REQUESTS_MAX,
)
from gateway.endpoints.reading import query_of
from gateway.endpoints.requests import extend_of, nack_of, reply_of, send_of, settle_of
from gateway.endpoints.requests_open import RequestsOpen
from gateway.endpoints.turn_sockets import Mailbox
from gateway.engine.effects import Answer, Extended, Handed, Refused, Sent, Settled
from gateway.engine.inputs import Grant, Request, Subscribe, Unsubscribe
from gateway.routing import inbox_stream, parse_address
from gateway.runtime import denial
from outbox.errors import InvalidId, MeshError, NotFound
from outbox.groups import first_of
from outbox.ids import AgentId

_BAD_DATA = 1003


class SubscribeRoute:
    """The route; one ``_Subscription`` a socket."""

    def __init__(self, desk: LocalDesk) -> None:
        self._desk = desk

    def routes(self) -> list[WebSocketRoute]:
        """Path of the socket."""
        return [WebSocketRoute("/v1/subscribe", self.subscribe)]

    async def subscribe(self, socket: WebSocket) -> None:
        """Serve one socket until it goes. What is refused is refused before the socket opens."""
        query = query_of(socket, SubscribeQuery)
        agent = _agent_of_stream(query.stream)
        if not may_act_as(principal_of(socket), agent):
            raise Forbidden(f"this token does not read the inbox of {agent}")
        runtime, turns = self._desk.runtime, self._desk.turns
        subscriber = f"ws-{self._desk.clock.entropy(8).hex()}"
        box = turns.open(subscriber, agent, query.session or subscriber)
        try:
            await runtime.ask(
                Subscribe(req=runtime.req(), subscriber=subscriber, agent=agent, session=box.key[1])
            )
            await socket.accept()
            await _Subscription(socket, self._desk, agent, subscriber, box, lines=query.lines).serve()
        finally:
            turns.close(subscriber)
            runtime.tell_now(Unsubscribe(subscriber))


class _Outgoing(NamedTuple):
    """An answer on its way out, and the size of the frame that asked."""

    text: str
    asked_chars: int


class _Subscription:
    def __init__(
        self,
        socket: WebSocket,
        desk: LocalDesk,
        agent: AgentId,
        subscriber: str,
        box: Mailbox,
        *,
        lines: bool,
    ) -> None:
        self._socket = socket
        self._desk = desk
        self._runtime = desk.runtime
        self._agent = agent
        self._subscriber = subscriber
        self._box = box
        self._lines = lines
        self._answers: list[_Outgoing] = []
        self._open = RequestsOpen(SOCKET_REQUESTS_MAX, SOCKET_REQUEST_CHARS_MAX)
        self._loop = asyncio.get_running_loop()
        self._sending_since_s: float | None = None
        """When the message was begun that is being sent; None while there is none."""

    async def serve(self) -> None:
        """Run its owners until one of them ends the socket."""
        try:
            async with asyncio.TaskGroup() as owners:
                owners.create_task(self._read())
                owners.create_task(self._write())
                owners.create_task(self._watch())
        except* (WebSocketDisconnect, TimeoutError):
            pass  # gone, or takes nothing: its session keeps its leases
        except* SubscriptionEnded as ended:
            await _close(self._socket, ended)

    async def _read(self) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code", 1006))
            text = message.get("text")
            if text is None:
                raise SubscriptionEnded(_BAD_DATA, "frames are text")
            self._desk.activity.note(self._agent, self._desk.clock.wall_ms())
            for asked in frames_of(text, lines=self._lines):
                await self._open.room()
                await self._begin(read_frame(asked), len(asked))

    async def _begin(self, frame: ClientFrame | BadClientFrame, chars: int) -> None:
        self._open.began(chars)
        try:
            match frame:
                case BadClientFrame():
                    self._refuse(frame.req_id, chars, frame.error)
                case CreditFrame():
                    await self._grant(frame.credit)
                    self._answered(frame.req_id, chars, None)
                case _:
                    self._runtime.post(self._request(frame), partial(self._answered, frame.req_id, chars))
        except MeshError as error:
            self._refuse(frame.req_id, chars, error)

    async def _grant(self, credit: int) -> None:
        if self._box.owed + credit > SOCKET_CREDIT_MAX:
            raise BadRequest(f"unused credit would be above {SOCKET_CREDIT_MAX}")
        self._box.owed += credit
        await self._runtime.tell(Grant(self._runtime.req(), self._subscriber, credit))

    def _request(self, frame: RequestFrame) -> Request:
        req, agent = self._runtime.req(), self._agent
        match frame:  # what sockets are full of first
            case EnqueueFrame(enqueue=message):
                return send_of(req, agent, message)
            case ReplyFrame():
                return reply_of(
                    req,
                    agent,
                    frame.reply,
                    frame.payload,
                    frame.text,
                    lease_id=frame.lease_id,
                    idempotency_key=frame.id,
                    type_=frame.type,
                    schema=frame.schema,
                    traceparent=frame.traceparent,
                    payload_ref=frame.payload_ref,
                )
            case AckFrame(ack=event, lease_id=lease_id, outcome=outcome, error=error):
                return settle_of(req, agent, event, lease_id=lease_id, outcome=outcome, error=error)
            case NackFrame(nack=event, lease_id=lease_id, delay_ms=delay_ms):
                return nack_of(req, agent, event, lease_id, delay_ms)
            case ExtendFrame(extend=event):
                return extend_of(req, agent, event, frame)

    # --- what goes out

    def _answered(self, req_id: ReqId | None, chars: int, answer: Answer | None) -> None:
        """A request was committed, or was none of the engine's (None)."""
        if isinstance(answer, Refused):
            self._refuse(req_id, chars, denial(answer))
        elif req_id is None:
            self._open.ended(1, chars)
        else:
            self._say(_Outgoing(frame_text(_ok(req_id, answer)), chars))

    def _refuse(self, req_id: ReqId | None, chars: int, error: MeshError) -> None:
        self._say(_Outgoing(frame_text(error_frame(error, req_id)), chars))

    def _say(self, answer: _Outgoing) -> None:
        self._answers.append(answer)
        self._box.wake()

    async def _write(self) -> None:
        while True:
            try:
                await self._box.changed()
            except SubscriptionEnded:
                await self._send([])  # a request that was refused for the same reason has its answer first
                raise
            await self._send(self._box.take())

    async def _watch(self) -> None:
        """Raises TimeoutError when a message does not leave; one timer for all of them."""
        while True:
            since_s = self._sending_since_s
            begun_s = self._loop.time() if since_s is None else since_s
            await asyncio.sleep(begun_s + SEND_WITHIN_S - self._loop.time())
            if since_s is not None and self._sending_since_s == since_s:
                raise TimeoutError

    async def _send(self, turns: list[Handed]) -> None:
        answers, self._answers = self._answers, []
        if answers:
            crashpoint(CrashPoint.ANSWER_BEFORE_SEND)
        if turns:
            crashpoint(CrashPoint.DELIVER_BEFORE_SEND)
        frames = chain((answer.text for answer in answers), map(deliver_text, turns))
        for message in messages_of(frames, lines=self._lines):
            self._sending_since_s = self._loop.time()
            await self._socket.send_text(message)
        self._sending_since_s = None
        if turns:
            crashpoint(CrashPoint.DELIVER_AFTER_SEND)
        self._open.ended(len(answers), sum(answer.asked_chars for answer in answers))


def _ok(req_id: ReqId, answer: Answer | None) -> OkFrame:
    match answer:
        case Sent():
            to = Recipient(answer.agent, answer.node)
            return OkFrame(
                ok=req_id,
                event_id=answer.event_id,
                thread_id=answer.thread_id,
                to=to,
                duplicate=answer.duplicate,
                nodes=answer.nodes,
            )
        case Settled():
            return OkFrame(ok=req_id, event_id=answer.event_id, duplicate=answer.duplicate)
        case Extended():
            return OkFrame(ok=req_id, event_id=answer.event_id, lease_ms=answer.lease_ms)
        case _:
            return OkFrame(ok=req_id)


def _agent_of_stream(stream: str) -> AgentId:
    """Raises NotFound for anything but an agent's inbox."""
    try:
        agent, _ = parse_address(stream)
    except InvalidId:
        agent = AgentId("")
    if inbox_stream(agent) != stream:
        raise NotFound("no stream has that name", hint="streams are named agents/<name>/inbox")
    return agent


async def _close(socket: WebSocket, ended: BaseExceptionGroup[SubscriptionEnded]) -> None:
    first = first_of(ended)
    try:
        async with asyncio.timeout(SEND_WITHIN_S):
            await socket.close(first.close_code, str(first))
    except (WebSocketDisconnect, TimeoutError):
        pass  # nobody is left to be told
