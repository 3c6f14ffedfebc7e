"""``WS /v1/subscribe``: an agent's turns, under its credit, and its answers to them.

Three owners share a socket: one reads frames and puts requests into the engine's queue, one sends the answers
in the order of the requests, one sends turns. Nothing piles up: turns are bounded by credit, waiting answers
by the queue between the first two, and a reader that takes nothing is let go.
"""

import asyncio
from typing import NamedTuple

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from auth.scopes import may_act_as
from gateway.api.answers import Recipient
from gateway.api.frames import ErrorFrame, OkFrame, ReqId
from gateway.crashpoint import CrashPoint, crashpoint
from gateway.endpoints.bodies import SubscribeQuery
from gateway.endpoints.desk import LocalDesk
from gateway.endpoints.errors import BadRequest, Forbidden, SubscriptionEnded
from gateway.endpoints.frames import (
    AckFrame,
    BadClientFrame,
    ClientFrame,
    CreditFrame,
    ExtendFrame,
    NackFrame,
    ReplyFrame,
    deliver_text,
    error_frame,
    frame_text,
    read_frame,
)
from gateway.endpoints.guard import principal_of
from gateway.endpoints.limits import SEND_WITHIN_S, SOCKET_CREDIT_MAX, SOCKET_REQUESTS_MAX
from gateway.endpoints.reading import query_of
from gateway.endpoints.requests import extend_of, nack_of, reply_of, settle_of
from gateway.endpoints.turn_sockets import Mailbox
from gateway.engine.effects import Answer, Extended, Sent, Settled
from gateway.engine.inputs import Grant, Request, Subscribe, Unsubscribe
from gateway.routing import inbox_stream, parse_address
from gateway.runtime import Runtime, check
from outbox.errors import InvalidId, MeshError, NotFound
from outbox.groups import first_of
from outbox.ids import AgentId

_BAD_DATA = 1003


class _Waiting(NamedTuple):
    """A request whose answer goes to the socket when it is on disk."""

    req_id: ReqId | None
    answer: asyncio.Future[Answer] | MeshError | None
    """None: done already."""


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
            await _Subscription(socket, runtime, agent, subscriber, box).serve()
        finally:
            turns.close(subscriber)
            runtime.tell_now(Unsubscribe(subscriber))


class _Subscription:
    def __init__(
        self, socket: WebSocket, runtime: Runtime, agent: AgentId, subscriber: str, box: Mailbox
    ) -> None:
        self._socket = socket
        self._runtime = runtime
        self._agent = agent
        self._subscriber = subscriber
        self._box = box
        self._waiting: asyncio.Queue[_Waiting] = asyncio.Queue(SOCKET_REQUESTS_MAX)

    async def serve(self) -> None:
        """Run the three owners until one of them ends the socket."""
        try:
            async with asyncio.TaskGroup() as owners:
                owners.create_task(self._read())
                owners.create_task(self._answer())
                owners.create_task(self._deliver())
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
            frame = read_frame(text)
            if isinstance(frame, BadClientFrame):
                await self._waiting.put(_Waiting(frame.req_id, frame.error))
            else:
                await self._waiting.put(_Waiting(frame.req_id, await self._begin(frame)))

    async def _begin(self, frame: ClientFrame) -> asyncio.Future[Answer] | MeshError | None:
        try:
            if isinstance(frame, CreditFrame):
                await self._grant(frame.credit)
                return None
            return self._runtime.submit(self._request(frame))
        except MeshError as error:
            return error

    async def _grant(self, credit: int) -> None:
        if self._box.owed + credit > SOCKET_CREDIT_MAX:
            raise BadRequest(f"unused credit would be above {SOCKET_CREDIT_MAX}")
        self._box.owed += credit
        await self._runtime.tell(Grant(self._runtime.req(), self._subscriber, credit))

    def _request(self, frame: AckFrame | NackFrame | ReplyFrame | ExtendFrame) -> Request:
        req, agent = self._runtime.req(), self._agent
        match frame:
            case AckFrame(ack=event, lease_id=lease_id, outcome=outcome, error=error):
                return settle_of(req, agent, event, lease_id=lease_id, outcome=outcome, error=error)
            case NackFrame(nack=event, lease_id=lease_id, delay_ms=delay_ms):
                return nack_of(req, agent, event, lease_id, delay_ms)
            case ExtendFrame(extend=event, lease_id=lease_id, lease_ms=lease_ms):
                return extend_of(req, agent, event, lease_id, lease_ms)
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
                )

    async def _answer(self) -> None:
        while True:
            waiting = await self._waiting.get()
            frame = await _answer_frame(waiting)
            if frame is not None:
                crashpoint(CrashPoint.ANSWER_BEFORE_SEND)
                await self._send(frame_text(frame))

    async def _deliver(self) -> None:
        while True:
            turn = await self._box.take()
            crashpoint(CrashPoint.DELIVER_BEFORE_SEND)
            await self._send(deliver_text(turn))
            crashpoint(CrashPoint.DELIVER_AFTER_SEND)

    async def _send(self, text: str) -> None:
        async with asyncio.timeout(SEND_WITHIN_S):
            await self._socket.send_text(text)


async def _answer_frame(waiting: _Waiting) -> OkFrame | ErrorFrame | None:
    try:
        match waiting.answer:
            case MeshError() as error:
                return error_frame(error, waiting.req_id)
            case None:
                answer = None
            case future:
                answer = check(await future)
    except MeshError as error:
        return error_frame(error, waiting.req_id)
    return None if waiting.req_id is None else _ok(waiting.req_id, answer)


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
