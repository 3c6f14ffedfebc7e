"""An agent's turns as an iterator that outlives its connection.

A turn is answered under its lease, on whatever socket the agent has then; so a turn that was begun before a
reconnect is ended after it like any other.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self

from gateway.api.answers import ExtendedAnswer, SentAnswer, SettledAnswer
from gateway.api.frames import Delivered
from gateway.client.credit import refill
from gateway.client.limits import BACKOFF_CAP_S, BACKOFF_FIRST_S
from gateway.client.line import Line
from gateway.client.wire import Wire
from gateway.clock import Clock
from gateway.errors import Unreachable
from outbox.blobref import BlobRef
from outbox.envelope import Event, decode_event
from outbox.ids import AgentId, EventId
from outbox.kinds import Kind
from outbox.retry import full_jitter


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
        schema: str | None,
        id: str | None,  # noqa: A002 - as above
    ) -> SentAnswer:
        """Answer the event."""
        ...

    async def send(
        self,
        to: str,
        payload: object,
        *,
        type: str | None,  # noqa: A002 - the envelope's own name
        schema: str | None,
        id: str | None,  # noqa: A002 - as above
        cause: str | None,
    ) -> SentAnswer:
        """Send to somebody."""
        ...

    def open_blob(self, ref: BlobRef, start: int = 0) -> AsyncIterator[bytes]:
        """The bytes of a blob."""
        ...

    async def ack(self, event_id: str, *, lease_id: str | None, failed: str | None = None) -> SettledAnswer:
        """End the turn."""
        ...

    async def nack(self, event_id: str, lease_id: str, *, delay_ms: int) -> SettledAnswer:
        """Give it back."""
        ...

    async def extend(
        self, event_id: str, lease_id: str, *, lease_ms: int, eta_at: datetime | str | None, plan: str | None
    ) -> ExtendedAnswer:
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
    def in_reply_to(self) -> EventId | None:
        """What this agent had sent and is answered here; None: somebody asks or tells something of their own.

        Who answers every answer talks in a circle, until the gateway refuses (``hop_limit``).
        """
        return self.event.corr_id if self.event.kind == Kind.REPLY else None

    @property
    def payload(self) -> object:
        """The payload as plain JSON values."""
        return json.loads(bytes(self.event.payload))

    @property
    def blob(self) -> BlobRef | None:
        """The blob that stands in place of a payload: it is on this machine; read it with ``open_blob``."""
        return self.event.payload_ref

    def open_blob(self, start: int = 0) -> AsyncIterator[bytes]:
        """The bytes of the blob, from ``start`` on. Raises ValueError when the event names none."""
        if self.event.payload_ref is None:
            raise ValueError(f"{self.event_id} names no blob")
        return self._agent.open_blob(self.event.payload_ref, start)

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
        schema: str | None = None,
        id: str | None = None,  # noqa: A002 - as above
    ) -> SentAnswer:
        """Answer the sender; the turn is processed with it. With the same ``id`` it is answered once."""
        self._turns.ends(self)
        try:
            sent = await self._agent.reply(
                self.event_id, payload, lease_id=self.lease_id, type=type, schema=schema, id=id
            )
            self._turns.answered(self)
            return sent
        finally:
            self._turns.finished(self)

    async def send(
        self,
        to: str,
        payload: object,
        *,
        type: str | None = None,  # noqa: A002 - the envelope's own name
        schema: str | None = None,
        id: str | None = None,  # noqa: A002 - as above
    ) -> SentAnswer:
        """Tell somebody else because of this event: it is named as the cause, so that circles end."""
        return await self._agent.send(to, payload, type=type, schema=schema, id=id, cause=self.event_id)

    async def ok(self) -> None:
        """The turn is done well."""
        self._turns.ends(self)
        try:
            await self._agent.ack(self.event_id, lease_id=self.lease_id)
            self._turns.answered(self)
        finally:
            self._turns.finished(self)

    async def failed(self, error: str) -> None:
        """The turn is done badly; the sender learns why."""
        self._turns.ends(self)
        try:
            await self._agent.ack(self.event_id, lease_id=self.lease_id, failed=error)
            self._turns.answered(self)
        finally:
            self._turns.finished(self)

    async def nack(self, delay_ms: int = 0) -> None:
        """Give it back; it is handed over again after the delay."""
        self._turns.ends(self)
        try:
            await self._agent.nack(self.event_id, self.lease_id, delay_ms=delay_ms)
            self._turns.answered(self)
        finally:
            self._turns.finished(self)

    async def extend(
        self, lease_ms: int, *, eta_at: datetime | str | None = None, plan: str | None = None
    ) -> None:
        """Keep it for so long from now.

        ``eta_at``, with its zone, and ``plan`` tell the sender when you expect to be done and what you are
        about to do. Both together stand in place of what you said before.
        """
        extended = await self._agent.extend(
            self.event_id, self.lease_id, lease_ms=lease_ms, eta_at=eta_at, plan=plan
        )
        self._turns.held(self, extended.lease_ms)


class Turns:
    """Yields turns for ever; reconnects by itself under the same session.

    Ends with Denied when the gateway refuses the agent, or when another program uses the session (code
    ``session_replaced``).
    """

    def __init__(self, wire: Wire, agent: "Answers", session: str, credit: int, clock: Clock) -> None:
        self.session = session
        self.line: Line | None = None
        """The socket that brings turns; the agent's requests may use it while it lasts."""
        self._wire = wire
        self._agent = agent
        self._credit = credit
        self._clock = clock
        self._granted = 0
        """Credit of this connection that was not used yet."""
        self._in_hand: dict[str, int] = {}
        """Leases of unfinished turns and when they run out, on the monotonic clock."""
        self._ending: set[str] = set()
        """Leases whose end is on its way: they take no credit, and are not brought to anybody once more."""
        self._granting = False
        """Credit is looked at when everybody who has something to do now has done it."""
        self._resuming = True
        """A connection first brings once more what the session holds; the first new turn ends that."""
        self._answered: set[str] = set()
        """Leases that were ended here meanwhile: they may be among what is brought."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the socket; unfinished turns stay with the session until their leases run out."""
        line, self.line = self.line, None
        self._resuming = True
        if line is not None:
            await line.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Turn:
        """The next turn."""
        while True:
            line = self.line or await self._connected()
            delivered = line.turn_now()
            if delivered is None:
                self._top_up()
                try:
                    async with asyncio.timeout(self._until_lease_end_s()):
                        delivered = await line.turn()
                except TimeoutError:
                    continue  # a lease in hand ran out: its credit is free again
                except Unreachable:
                    await self.aclose()
                    continue
            turn = self._taken(delivered)
            if turn is not None:
                return turn

    def ends(self, turn: Turn) -> None:
        """The end of a turn goes out now, and room for another one behind it, in the same message."""
        if self._in_hand.pop(turn.lease_id, None) is not None:
            self._ending.add(turn.lease_id)
            self._grant_soon()

    def answered(self, turn: Turn) -> None:
        """A turn's end was confirmed: a hand-over of it that is still on its way is void."""
        if self._resuming:
            self._answered.add(turn.lease_id)

    def finished(self, turn: Turn) -> None:
        """A turn left this agent's hands: another may come."""
        self._in_hand.pop(turn.lease_id, None)
        self._ending.discard(turn.lease_id)
        self._grant_soon()

    def held(self, turn: Turn, lease_ms: int) -> None:
        """A turn is kept for so long from now."""
        self._in_hand[turn.lease_id] = self._clock.mono_ms() + lease_ms

    async def _connected(self) -> Line:
        failures = 0
        while self.line is None:
            try:
                self.line = await Line.open(self._wire, self._agent.name, self.session)
                self._granted = 0
            except Unreachable:
                failures += 1
                await self._pause(failures)
        return self.line

    def _grant_soon(self) -> None:
        """One grant for all turns that end in one turn of the loop, behind what ends them."""
        if not self._granting:
            self._granting = True
            asyncio.get_running_loop().call_soon(self._top_up)

    def _top_up(self) -> None:
        self._granting = False
        if self.line is None or self.line.lost:
            return  # the next connection grants anew
        now_ms = self._clock.mono_ms()
        if self._in_hand and min(self._in_hand.values()) <= now_ms:
            self._in_hand = {lease: end for lease, end in self._in_hand.items() if end > now_ms}
        more = refill(self._credit - len(self._in_hand), self._granted)
        if more:
            self._granted += more
            self.line.grant(more)

    def _until_lease_end_s(self) -> float | None:
        if not self._in_hand:
            return None
        return max(0.0, (min(self._in_hand.values()) - self._clock.mono_ms()) / 1000)

    def _taken(self, delivered: Delivered) -> Turn | None:
        if not delivered.resumed:
            self._granted -= 1
            self._resuming = False
            self._answered.clear()
        elif delivered.lease_id in {*self._in_hand, *self._ending, *self._answered}:
            return None  # in our hands, and whoever holds it answers; or answered while this was on its way
        turn = Turn(self, self._agent, delivered)
        self.held(turn, delivered.lease_ms)
        return turn

    async def _pause(self, failures: int) -> None:
        fraction = self._clock.fraction()
        await asyncio.sleep(full_jitter(failures, fraction, first=BACKOFF_FIRST_S, cap=BACKOFF_CAP_S))
