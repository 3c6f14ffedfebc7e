"""An agent's verbs: send, reply, ack, nack, inbox, watch, turns.

What is sent carries an id that is made once. When the connection is lost before the answer came, the same id
is sent again: the gateway answers the second time what it answered the first, and the message exists once.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec
from websockets.exceptions import ConnectionClosed

from gateway.api.answers import ExtendedAnswer, SentAnswer, SettledAnswer, ToldAnswer
from gateway.api.frames import ItemFrame, ServerFrame
from gateway.api.rows import InboxAnswer, InboxRow
from gateway.api.trace import EventTrace
from gateway.client.answers import extended_answer, sent_answer, settled_answer
from gateway.client.blobs import Blobs
from gateway.client.limits import (
    ASK_CAP_S,
    ASK_FIRST_S,
    BACKOFF_CAP_S,
    BACKOFF_FIRST_S,
    CREDIT_DEFAULT,
    REQUEST_WITHIN_S,
    ROWS_AT_ONCE,
)
from gateway.client.line import Line
from gateway.client.shown import Shown
from gateway.client.turns import Turns
from gateway.client.wire import Wire
from gateway.clock import Clock
from gateway.errors import Denied, TimedOut, Unreachable
from outbox.blobref import OCTETS, BlobRef
from outbox.errors import NotFound
from outbox.ids import AgentId, EventId
from outbox.retry import full_jitter

Level = Literal["accepted", "processed", "reply"]

_REACHED: dict[Level, frozenset[str]] = {
    "accepted": frozenset({"accepted", "processed", "replied", "dead_letter"}),
    "processed": frozenset({"processed", "replied", "dead_letter"}),
    "reply": frozenset({"replied", "dead_letter"}),
}


class AgentClient:
    """One agent of a gateway. Every call raises Denied, Unreachable or TimedOut."""

    def __init__(self, wire: Wire, name: AgentId, clock: Clock) -> None:
        self.name = name
        self._wire = wire
        self._clock = clock
        self.blobs = Blobs(wire, clock)
        self._line: Line | None = None
        self._opening = asyncio.Lock()
        self._turns: list[Turns] = []

    async def aclose(self) -> None:
        """Let go of the agent's sockets; it may be used again."""
        turns, self._turns = self._turns, []
        for each in turns:
            await each.aclose()
        line, self._line = self._line, None
        if line is not None:
            await line.close()

    async def send(
        self,
        to: str,
        payload: object = None,
        *,
        file: Path | BlobRef | None = None,
        content_type: str = OCTETS,
        type: str | None = None,  # noqa: A002 - the envelope's own name
        schema: str | None = None,
        traceparent: str | None = None,
        thread: str | None = None,
        priority: int | None = None,
        expires_in_ms: int | None = None,
        id: str | None = None,  # noqa: A002 - as above
        cause: str | None = None,
        wait: bool = False,
        within_s: float = REQUEST_WITHIN_S,
    ) -> SentAnswer:
        """Send to ``name``, ``name@node``, ``*``, ``group:name`` or a list with commas.

        A text becomes the payload ``{"text": …}``. ``cause`` is the event of the inbox that this answers;
        ``wait`` keeps what is for a known agent that nobody owns now until somebody does. ``schema`` names
        what the payload follows, ``traceparent`` the trace that this belongs to (else to that of its cause).

        ``file`` is sent as a blob in place of a payload: a path is uploaded first, a reference was before.

        Returns once it is in the outbox. A lost connection is tried again under the same id for ``within_s``.
        """
        ref = await self._uploaded(file, content_type, within_s)
        envelope = {
            "id": id if id is not None else self._new_id(),
            "payload": _payload(payload) if ref is None else None,
            "payloadRef": ref,
            "type": type,
            "schema": schema,
            "traceparent": traceparent,
            "thread": thread,
            "priority": priority,
            "expiresInMs": expires_in_ms,
            "cause": cause,
            "wait": wait or None,
        }
        bare = "payload" if ref is None else "payloadRef"  # a payload may be null
        named = {name: value for name, value in envelope.items() if value is not None or name == bare}
        return sent_answer(await self._insist({"enqueue": {"to": to, "envelope": named}}, within_s))

    async def reply(
        self,
        event_id: str,
        payload: object = None,
        *,
        file: Path | BlobRef | None = None,
        content_type: str = OCTETS,
        lease_id: str | None = None,
        type: str | None = None,  # noqa: A002 - as above
        schema: str | None = None,
        traceparent: str | None = None,
        id: str | None = None,  # noqa: A002 - as above
        within_s: float = REQUEST_WITHIN_S,
    ) -> SentAnswer:
        """Answer an event of the inbox, with a ``file`` too; its turn is done. Repeated like ``send``."""
        ref = await self._uploaded(file, content_type, within_s)
        frame = {
            "reply": event_id,
            "payload": msgspec.Raw(msgspec.json.encode(_payload(payload))) if ref is None else None,
            "payloadRef": ref,
            "leaseId": lease_id,
            "type": type,
            "schema": schema,
            "traceparent": traceparent,
            "id": id if id is not None else self._new_id(),
        }
        return sent_answer(await self._insist(frame, within_s))

    async def tell_incident(
        self,
        incident_id: str,
        name: str,
        severity: str,
        *,
        opened_at: str | None = None,
        closed_at: str | None = None,
        ref: str | None = None,
        detail: str = "",
    ) -> ToldAnswer:
        """Tell every node of an incident that a report found, or with ``closed_at`` that it is over.

        Each is told once, however often it is asked for: so it may be repeated, after a crash as well.
        """
        body = {
            "agent": self.name,
            "id": incident_id,
            "class": name,
            "severity": severity,
            "openedAt": opened_at,
            "closedAt": closed_at,
            "ref": ref,
            "detail": detail,
        }
        return await self._wire.post("/v1/incidents", ToldAnswer, body)

    async def ack(
        self,
        event_id: str,
        *,
        lease_id: str | None = None,
        failed: str | None = None,
        within_s: float = REQUEST_WITHIN_S,
    ) -> SettledAnswer:
        """End a turn: well, or as ``failed`` with a reason. The same end twice is no error."""
        frame = {
            "ack": event_id,
            "leaseId": lease_id,
            "outcome": "ok" if failed is None else "failed",
            "error": failed,
        }
        return settled_answer(await self._insist(frame, within_s))

    async def nack(self, event_id: str, lease_id: str, *, delay_ms: int = 0) -> SettledAnswer:
        """Give a turn back."""
        return settled_answer(await self._ask({"nack": event_id, "leaseId": lease_id, "delayMs": delay_ms}))

    async def extend(
        self,
        event_id: str,
        lease_id: str,
        *,
        lease_ms: int,
        eta_at: datetime | str | None = None,
        plan: str | None = None,
    ) -> ExtendedAnswer:
        """Keep a turn for so long from now. Its sender is told when you expect to be done, and with what."""
        frame = {"extend": event_id, "leaseId": lease_id, "leaseMs": lease_ms}
        return extended_answer(await self._ask(frame | {"etaAt": eta_at, "planSummary": plan}))

    async def open_blob(self, ref: BlobRef, start: int = 0) -> AsyncIterator[bytes]:
        """The bytes of a blob that an event names, from ``start`` on; checked when all were read.

        Raises BlobWrong at the end, if they are not what the event means.
        """
        async for piece in self.blobs.read(ref, start):
            yield piece

    async def _uploaded(self, file: Path | BlobRef | None, media: str, within_s: float) -> BlobRef | None:
        if isinstance(file, Path):
            return await self.blobs.upload(file, content_type=media, within_s=within_s)
        return file

    async def inbox(
        self, *, done: bool = False, limit: int | None = None, after: str | None = None
    ) -> list[InboxRow]:
        """Look at the inbox: unfinished turns, or with ``done`` all. Acknowledges nothing."""
        query = {"agent": self.name, "all": done, "limit": limit, "after": after}
        return (await self._wire.get("/v1/inbox", InboxAnswer, query)).items

    async def trace(self, event_id: str) -> EventTrace:
        """What this node knows about one event."""
        return await self._wire.get(f"/v1/trace/{event_id}", EventTrace, {})

    async def wait_for(self, event_id: str, level: Level, within_s: float) -> EventTrace:
        """Wait until a sent event is accepted, processed or replied to, or is a dead letter.

        Raises TimedOut: the event stays queued.
        """
        deadline_ms = self._clock.mono_ms() + int(within_s * 1000)
        asked = 0
        while True:
            found = await self.trace(event_id)
            asked += 1
            if found.state in _REACHED[level]:
                return found
            left_s = (deadline_ms - self._clock.mono_ms()) / 1000
            if left_s <= 0:
                raise TimedOut(
                    f"{event_id} is {found.state} after {within_s:g} s; it stays queued",
                    hint=f"follow it with: gateway trace {event_id}",
                )
            await asyncio.sleep(min(left_s, ASK_CAP_S, ASK_FIRST_S * 2 ** min(asked, 10)))

    def turns(self, session: str | None = None, *, credit: int = CREDIT_DEFAULT) -> Turns:
        """Work on turns, at most ``credit`` at a time.

        ``session`` names this run of the agent: after a disconnect or restart the same name gets its
        unfinished turns back under their old leases, marked as resumed. Without one a fresh name is made.
        """
        name = session if session is not None else f"session-{self._clock.entropy(8).hex()}"
        turns = Turns(self._wire, self, name, credit, self._clock)
        self._turns = [*(each for each in self._turns if each.line is not None), turns]
        return turns

    async def watch(self) -> AsyncGenerator[InboxRow, None]:
        """Rows as they are accepted, for ever; what came while the gateway was away follows later."""
        newest = await self.inbox(done=True, limit=1)
        last = newest[-1].event_id if newest else None
        shown = Shown(newest)
        failures = 0
        while True:
            try:
                socket = await self._wire.open("/v1/watch", {"agent": self.name})
                failures = 0
                async with socket:
                    while missed := shown.new(await self._since(last)):
                        for row in missed:
                            last = row.event_id
                            yield row
                    async for text in socket:
                        for row in shown.new([msgspec.json.decode(text, type=ItemFrame).item]):
                            last = row.event_id
                            yield row
            except (Unreachable, ConnectionClosed):
                failures += 1
            await self._pause(failures or 1)

    async def _since(self, last: EventId | None) -> list[InboxRow]:
        """What came next after an event; the newest rows when that is forgotten, or there was none."""
        try:
            return await self.inbox(done=True, after=last, limit=ROWS_AT_ONCE)
        except Denied as denied:
            if denied.wire_code != NotFound.code:
                raise
            return await self.inbox(done=True, limit=ROWS_AT_ONCE)

    async def _insist(self, frame: Mapping[str, object | None], within_s: float) -> ServerFrame:
        deadline_ms = self._clock.mono_ms() + int(within_s * 1000)
        failures = 0
        while True:
            try:
                return await self._ask(frame)
            except Unreachable:
                failures += 1
                left_ms = deadline_ms - self._clock.mono_ms()
                if left_ms <= 0:
                    raise
            await self._pause(failures, left_ms / 1000)

    async def _ask(self, frame: Mapping[str, object | None]) -> ServerFrame:
        return await (self._open_line() or await self._own_line()).ask(frame)

    def _open_line(self) -> Line | None:
        """A socket that is open already: one that brings turns, so that answers and credit go together."""
        lines = [turns.line for turns in self._turns] + [self._line]
        return next((line for line in lines if line is not None and not line.lost), None)

    async def _own_line(self) -> Line:
        async with self._opening:
            line = self._open_line()
            if line is None:
                if self._line is not None:
                    await self._line.close()
                line = self._line = await Line.open(self._wire, self.name)
        return line

    async def _pause(self, failures: int, left_s: float = BACKOFF_CAP_S) -> None:
        fraction = self._clock.fraction()
        cap_s = min(BACKOFF_CAP_S, left_s)
        await asyncio.sleep(full_jitter(failures, fraction, first=BACKOFF_FIRST_S, cap=cap_s))

    def _new_id(self) -> str:
        """Begins with the time: a gateway keeps these sorted, and finds them where it has just written."""
        return f"id-{self._clock.wall_ms():012x}{self._clock.entropy(16).hex()}"


def _payload(payload: object) -> object:
    return {"text": payload} if isinstance(payload, str) else payload
