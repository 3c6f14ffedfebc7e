"""A simulated agent: sends what it is told to send, takes turns and does with them what its habits say.

It outlives the runs of its gateway, and knows what it does not know: a send whose answer never came is sent
again under its key, a session that lost its socket comes back.
"""

import asyncio
from collections import deque
from hashlib import sha256
from typing import TypedDict

import msgspec

from gateway.blobs.errors import BlobBusy
from gateway.endpoints.errors import SubscriptionEnded
from gateway.endpoints.turn_sockets import Mailbox
from gateway.engine.effects import Extended, Handed, Sent, Settled
from gateway.engine.inputs import Extend, Grant, Nack, Reply, Request, Send, Settle, Subscribe, Unsubscribe
from gateway.errors import Busy, Denied
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.gateway import SimGateway
from gateway.harness.sim.habits import Habit, Habits
from gateway.harness.sim.labels import labels_of, promise_of
from gateway.harness.sim.notices import Notice, tell
from gateway.harness.sim.seeing import Seeing
from outbox.blobref import BlobId, BlobRef
from outbox.envelope import decode_event
from outbox.errors import NotFound, StorageFull
from outbox.ids import AgentId, EventId
from outbox.kinds import Kind, Outcome
from outbox.timestamps import rfc3339

_RETRY_S = 2.0
_PIECE_BYTES = 30_000
_SLOW_S = 45.0
"""Longer than a lease."""


_HANDS_MAX = 1000
"""Far above any credit plus what a session resumes."""


class Outgoing(msgspec.Struct, frozen=True):
    """A message that an agent wants to send."""

    key: str
    to: str
    priority: int
    expires_in_ms: int | None
    blob_bytes: int = 0
    """Of the file that it is; 0: it is a text."""


class _About(TypedDict):
    req: int
    agent: AgentId
    event_id: EventId
    lease_id: str


class _Died(Exception):
    """The agent's process ended."""


class SimAgent:
    """One agent of one node."""

    def __init__(self, name: AgentId, habits: Habits, dice: Dice, witness: Seeing) -> None:
        self.name = name
        self.habits = habits
        self.credit = dice.between(1, 4)
        self.todo: deque[Outgoing | Notice] = deque()
        self._dice = dice
        self._witness = witness
        self._session = f"{name}-1"
        self._sessions = 1
        self._sockets = 0
        self._wanted: asyncio.Event | None = None

    def want(self, message: Outgoing | Notice) -> None:
        """Send or tell this as soon as there is a gateway."""
        self.todo.append(message)
        if self._wanted is not None:
            self._wanted.set()

    async def live(self, gateway: SimGateway) -> None:
        """With one run of the gateway."""
        self._wanted = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_all(gateway, self._wanted))
            tasks.create_task(self._serve(gateway))

    # --- sending

    async def _send_all(self, gateway: SimGateway, wanted: asyncio.Event) -> None:
        while True:
            while self.todo:
                match self.todo[0]:
                    case Notice() as notice:
                        await self._tell(gateway, notice)
                    case Outgoing() as message:
                        await self._send(gateway, message)
            wanted.clear()
            await wanted.wait()

    async def _send(self, gateway: SimGateway, message: Outgoing) -> None:
        try:
            ref = await _uploaded(gateway, message)
        except (Busy, Denied, StorageFull, BlobBusy):
            await asyncio.sleep(_RETRY_S)
            return
        labels = labels_of(message.key)
        request = Send(
            req=gateway.runtime.req(),
            agent=self.name,
            to=message.to,
            payload=msgspec.Raw(b'{"text":"hello"}' if ref is None else b"null"),
            payload_ref=ref,
            schema=labels.schema,
            traceparent=labels.traceparent,
            idempotency_key=message.key,
            priority=message.priority,
            expires_in_ms=message.expires_in_ms,
        )
        try:
            answer = await gateway.runtime.ask(request)
        except (Busy, Denied) as refusal:
            if isinstance(refusal, Denied) and refusal.wire_code == NotFound.code:
                self._give_up(message)
            await asyncio.sleep(_RETRY_S)  # the disk is full, or the agent was taken away for a while
            return
        assert isinstance(answer, Sent)
        self.todo.popleft()
        self._witness.sent(gateway.name, self.name, message.key, answer)

    def _give_up(self, message: Outgoing) -> None:
        """To several, of whom one has nobody any more who answers for it: that is refused."""
        if self._witness.is_out(message.to):
            self.todo.popleft()

    async def _tell(self, gateway: SimGateway, notice: Notice) -> None:
        answer = await tell(gateway, self.name, notice)
        if answer is None:
            await asyncio.sleep(_RETRY_S)
            return
        self.todo.popleft()
        self._witness.reported_to(gateway.name, self.name, notice, answer)

    # --- turns

    async def _serve(self, gateway: SimGateway) -> None:
        """Until the gateway ends: a task group that fails at that moment may swallow the cancellation."""
        while not gateway.has_ended:
            self._sockets += 1
            subscriber = f"{self.name}-s{self._sockets}"
            box = gateway.turns.open(subscriber, self.name, self._session)
            try:
                await self._take_turns(gateway, subscriber, box)
            except* (SubscriptionEnded, Denied, Busy):
                pass
            except* _Died:
                if self._dice.chance(0.5):
                    self._sessions += 1
                    self._session = f"{self.name}-{self._sessions}"
            finally:
                gateway.turns.close(subscriber)
                gateway.runtime.tell_now(Unsubscribe(subscriber))
            await asyncio.sleep(self._dice.between(1, 8))

    async def _take_turns(self, gateway: SimGateway, subscriber: str, box: Mailbox) -> None:
        runtime = gateway.runtime
        request = Subscribe(req=runtime.req(), subscriber=subscriber, agent=self.name, session=self._session)
        await runtime.ask(request)
        await runtime.tell(Grant(runtime.req(), subscriber, self.credit))
        hands: asyncio.Queue[Handed] = asyncio.Queue(_HANDS_MAX)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._receive(gateway, box, hands))
            tasks.create_task(self._work_off(gateway, subscriber, hands))

    async def _receive(self, gateway: SimGateway, box: Mailbox, hands: "asyncio.Queue[Handed]") -> None:
        while True:
            await box.changed()
            for turn in box.take():
                self._witness.handed(gateway.name, self.name, turn)
                await hands.put(turn)

    async def _work_off(self, gateway: SimGateway, subscriber: str, hands: "asyncio.Queue[Handed]") -> None:
        while True:
            await self._work(gateway, await hands.get())
            await gateway.runtime.tell(Grant(gateway.runtime.req(), subscriber, 1))

    async def _work(self, gateway: SimGateway, turn: Handed) -> None:
        habit = self.habits.draw(self._dice)
        event = decode_event(turn.body)
        await asyncio.sleep(self._dice.between(0, 3000) / 1000)
        match habit:
            case Habit.NACK:
                delay_ms = self._dice.among((0, 500, 5000))
                await self._ask(gateway, Nack(**self._about(gateway, turn), delay_ms=delay_ms))
            case Habit.EXTEND:
                await self._ask(gateway, self._extend(gateway, turn))
                await asyncio.sleep(_SLOW_S)
                await self._end(gateway, turn, Outcome.OK)
            case Habit.SLOW:
                await asyncio.sleep(_SLOW_S)
                await self._end(gateway, turn, Outcome.OK)
            case Habit.MUTE:
                pass
            case Habit.DIES:
                raise _Died("the agent's process ended")
            case Habit.FAILED:
                await self._end(gateway, turn, Outcome.FAILED)
            case Habit.ECHO:
                await self._reply(gateway, turn)
            case Habit.REPLY if event.kind == Kind.MESSAGE:
                await self._reply(gateway, turn)
            case _:
                await self._end(gateway, turn, Outcome.OK)

    def _about(self, gateway: SimGateway, turn: Handed) -> _About:
        return {
            "req": gateway.runtime.req(),
            "agent": self.name,
            "event_id": turn.event_id,
            "lease_id": turn.lease_id,
        }

    def _extend(self, gateway: SimGateway, turn: Handed) -> Extend:
        eta_ms, plan = promise_of(turn.event_id)
        eta_at = None if eta_ms is None else rfc3339(eta_ms)
        return Extend(**self._about(gateway, turn), lease_ms=60_000, eta_at=eta_at, plan_summary=plan)

    async def _end(self, gateway: SimGateway, turn: Handed, outcome: Outcome) -> None:
        await self._ask(gateway, Settle(**self._about(gateway, turn), outcome=outcome))

    async def _reply(self, gateway: SimGateway, turn: Handed) -> None:
        request = Reply(
            **self._about(gateway, turn),
            payload=msgspec.Raw(b'{"text":"yes"}'),
            idempotency_key=f"re-{turn.event_id}",
        )
        if not await self._ask(gateway, request):
            await self._end(gateway, turn, Outcome.OK)  # enough replies, or no room on the disk

    async def _ask(self, gateway: SimGateway, request: Request) -> bool:
        if isinstance(request, Nack):
            self._witness.returned(gateway.name, self.name, request.event_id)
        try:
            answer = await gateway.runtime.ask(request)
        except (Busy, Denied):
            return False  # the lease has run out, or the disk is full: the turn comes again
        match answer, request:
            case Sent(), Reply(idempotency_key=key, event_id=event):
                assert key is not None
                self._witness.sent(gateway.name, self.name, key, answer)
                self._witness.ended(gateway.name, self.name, event)
            case Settled(event_id=event), Settle():
                self._witness.ended(gateway.name, self.name, event)
            case Extended() | Settled(), _:
                pass
        return True


async def _uploaded(gateway: SimGateway, message: Outgoing) -> BlobRef | None:
    """The file of a message, brought to the gateway; what was cut short is gone on with."""
    if not message.blob_bytes:
        return None
    content = sha256(message.key.encode()).digest() * (message.blob_bytes // 32 + 1)
    name = BlobId(sha256(content).hexdigest())
    if await gateway.blobs.have(name) is None:
        async with gateway.blobs.coming(name, len(content)) as incoming:
            while not incoming.whole:
                await incoming.write(content[incoming.offset : incoming.offset + _PIECE_BYTES])
            await incoming.keep()
    return BlobRef(name, len(content))
