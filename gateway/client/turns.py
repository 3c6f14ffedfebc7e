"""An agent's turns as an iterator that outlives its connection.

The socket only brings turns and takes credit; answers go by HTTP under the turn's lease, so a turn that was
begun before a reconnect is ended after it like any other.
"""

import asyncio
import json
from contextlib import suppress
from types import TracebackType
from typing import Protocol, Self

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from gateway.api.answers import ExtendedAnswer, SentAnswer, SettledAnswer
from gateway.api.frames import Delivered, DeliverFrame, ErrorFrame
from gateway.client.limits import BACKOFF_CAP_S, BACKOFF_FIRST_S
from gateway.client.wire import Wire
from gateway.clock import Clock
from gateway.errors import Denied, Unreachable
from outbox.envelope import Event, decode_event
from outbox.ids import AgentId, EventId
from outbox.retry import full_jitter

_REPLACED = 4409


class Answers(Protocol):
    """What a turn needs of its agent (``gateway.client.agent.AgentClient``)."""

    name: AgentId

    async def reply(
        self,
        event_id: str,
        payload: object,
        *,
        lease_id: str | None,
        type: str | None,  # noqa: A002 - the envelope's own name
        id: str | None,  # noqa: A002 - as above
    ) -> SentAnswer:
        """Answer the event."""
        ...

    async def ack(self, event_id: str, *, lease_id: str | None, failed: str | None = None) -> SettledAnswer:
        """End the turn."""
        ...

    async def nack(self, event_id: str, lease_id: str, *, delay_ms: int) -> SettledAnswer:
        """Give it back."""
        ...

    async def extend(self, event_id: str, lease_id: str, *, lease_ms: int) -> ExtendedAnswer:
        """Keep it longer."""
        ...


class Turn:
    """One event in this agent's hands until it is answered, given back, or its lease runs out."""

    def __init__(self, turns: "Turns", agent: "Answers", delivered: Delivered) -> None:
        self._turns = turns
        self._agent = agent
        self.event: Event = decode_event(bytes(delivered.event))
        self.lease_id = delivered.lease_id
        self.lease_ms = delivered.lease_ms
        self.delivery_count = delivered.delivery_count
        self.resumed = delivered.resumed
        """The same session had it before a disconnect: part of the work may be done."""

    @property
    def event_id(self) -> EventId:
        """Which event."""
        return self.event.event_id

    @property
    def sender(self) -> AgentId | None:
        """Who sent it."""
        return self.event.source_agent_id

    @property
    def payload(self) -> object:
        """The payload as plain JSON values."""
        return json.loads(bytes(self.event.payload))

    @property
    def text(self) -> str:
        """The payload's text, or the whole payload as JSON when it has none."""
        payload = self.payload
        text = payload.get("text") if isinstance(payload, dict) else payload
        return text if isinstance(text, str) else bytes(self.event.payload).decode()

    async def reply(
        self,
        payload: object,
        *,
        type: str | None = None,  # noqa: A002 - the envelope's own name
        id: str | None = None,  # noqa: A002 - as above
    ) -> SentAnswer:
        """Answer the sender; the turn is processed with it. With the same ``id`` it is answered once."""
        try:
            sent = await self._agent.reply(self.event_id, payload, lease_id=self.lease_id, type=type, id=id)
            self._turns.answered(self)
            return sent
        finally:
            await self._turns.finished(self)

    async def ok(self) -> None:
        """The turn is done well."""
        try:
            await self._agent.ack(self.event_id, lease_id=self.lease_id)
            self._turns.answered(self)
        finally:
            await self._turns.finished(self)

    async def failed(self, error: str) -> None:
        """The turn is done badly; the sender learns why."""
        try:
            await self._agent.ack(self.event_id, lease_id=self.lease_id, failed=error)
            self._turns.answered(self)
        finally:
            await self._turns.finished(self)

    async def nack(self, delay_ms: int = 0) -> None:
        """Give it back; it is handed over again after the delay."""
        try:
            await self._agent.nack(self.event_id, self.lease_id, delay_ms=delay_ms)
            self._turns.answered(self)
        finally:
            await self._turns.finished(self)

    async def extend(self, lease_ms: int) -> None:
        """Keep it for so long from now."""
        extended = await self._agent.extend(self.event_id, self.lease_id, lease_ms=lease_ms)
        self._turns.held(self, extended.lease_ms)


class Turns:
    """Yields turns for ever; reconnects by itself under the same session.

    Ends with Denied when the gateway refuses the agent, or when another program uses the session (code
    ``session_replaced``).
    """

    def __init__(self, wire: Wire, agent: "Answers", session: str, credit: int, clock: Clock) -> None:
        self.session = session
        self._wire = wire
        self._agent = agent
        self._credit = credit
        self._clock = clock
        self._socket: ClientConnection | None = None
        self._granted = 0
        """Credit of this connection that was not used yet."""
        self._in_hand: dict[str, int] = {}
        """Leases of unfinished turns and when they run out, on the monotonic clock."""
        self._answered: dict[str, int] = {}
        """Leases that were ended here, for as long as a new connection may have brought them once more."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the socket; unfinished turns stay with the session until their leases run out."""
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Turn:
        """The next turn."""
        while True:
            try:
                socket = await self._connected()
                await self._top_up()
                async with asyncio.timeout(self._until_lease_end_s()):
                    text = await socket.recv()
            except TimeoutError:
                continue  # a lease in hand ran out: its credit is free again
            except ConnectionClosed as closed:
                self._lost(closed)
                continue
            turn = self._read(text)
            if turn is not None:
                return turn

    def answered(self, turn: Turn) -> None:
        """A turn's end was confirmed: a hand-over of it that is still on its way is void."""
        self._answered[turn.lease_id] = self._clock.mono_ms() + turn.lease_ms

    async def finished(self, turn: Turn) -> None:
        """A turn left this agent's hands: another may come."""
        self._in_hand.pop(turn.lease_id, None)
        with suppress(ConnectionClosed):  # the next connection grants anew
            await self._top_up()

    def held(self, turn: Turn, lease_ms: int) -> None:
        """A turn is kept for so long from now."""
        self._in_hand[turn.lease_id] = self._clock.mono_ms() + lease_ms

    async def _connected(self) -> ClientConnection:
        failures = 0
        query = {"stream": f"agents/{self._agent.name}/inbox", "session": self.session}
        while self._socket is None:
            try:
                self._socket = await self._wire.open("/v1/subscribe", query)
                self._granted = 0
            except Unreachable:
                failures += 1
                await self._pause(failures)
        return self._socket

    async def _top_up(self) -> None:
        now_ms = self._clock.mono_ms()
        self._in_hand = {lease: end for lease, end in self._in_hand.items() if end > now_ms}
        self._answered = {lease: end for lease, end in self._answered.items() if end > now_ms}
        missing = self._credit - len(self._in_hand) - self._granted
        if missing > 0 and self._socket is not None:
            self._granted += missing
            await self._socket.send(msgspec.json.encode({"credit": missing}).decode())

    def _until_lease_end_s(self) -> float | None:
        if not self._in_hand:
            return None
        return max(0.0, (min(self._in_hand.values()) - self._clock.mono_ms()) / 1000)

    def _read(self, text: str | bytes) -> Turn | None:
        frame = _decode(text)
        if isinstance(frame, ErrorFrame):
            error = frame.error
            raise Denied(error.code, error.message, hint=error.hint)
        delivered = frame.deliver
        if not delivered.resumed:
            self._granted -= 1
        elif delivered.lease_id in self._in_hand or delivered.lease_id in self._answered:
            return (
                None  # in our hands, and whoever holds it will answer; or answered while this was on its way
            )
        turn = Turn(self, self._agent, delivered)
        self.held(turn, delivered.lease_ms)
        return turn

    def _lost(self, closed: ConnectionClosed) -> None:
        self._socket = None
        if closed.rcvd is not None and closed.rcvd.code == _REPLACED:
            raise Denied(
                "session_replaced",
                f"another program took over the session {self.session}",
                hint="give each run of an agent its own session name",
            )

    async def _pause(self, failures: int) -> None:
        fraction = self._clock.fraction()
        await asyncio.sleep(full_jitter(failures, fraction, first=BACKOFF_FIRST_S, cap=BACKOFF_CAP_S))


class _Frames(msgspec.Struct, frozen=True):
    deliver: Delivered | None = None
    error: msgspec.Raw | None = None


def _decode(text: str | bytes) -> DeliverFrame | ErrorFrame:
    """Read a server frame; this client asks for no ``ok``."""
    frame = msgspec.json.decode(text, type=_Frames)
    if frame.deliver is not None:
        return DeliverFrame(frame.deliver)
    return msgspec.json.decode(text, type=ErrorFrame)
