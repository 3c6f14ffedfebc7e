"""One socket of an agent: requests in pipeline, each answered once, and turns under a session.

What is asked in the same few turns of the loop, or while an earlier message is on its way, goes out together:
the end of a turn and what is sent because of it are one message and one commit, and under load it is many.
A line that is lost stays lost, its owner opens another.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple, Self

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from gateway.api.frames import Delivered, ErrorRecord, ServerFrame
from gateway.client.limits import FRAMES_ENOUGH, MESSAGE_CHARS_MAX, REQUEST_WITHIN_S
from gateway.client.wire import Wire, bounded
from gateway.errors import Denied, TimedOut, Unreachable
from gateway.gathering import gathered
from outbox.ids import AgentId

_REPLACED = 4409

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ServerFrame).decode


class _Asked(NamedTuple):
    answer: asyncio.Future[ServerFrame]
    until_s: float
    """On the clock of the loop."""


class Line:
    """An open socket to ``/v1/subscribe``. Without a grant it brings no turns and only carries requests."""

    def __init__(self, socket: ClientConnection, place: str) -> None:
        self.lost = False
        self._socket = socket
        self._place = place
        self._last_req = 0
        self._loop = asyncio.get_running_loop()
        self._asked: dict[int, _Asked] = {}
        """By their number, oldest first."""
        self._timer: asyncio.TimerHandle | None = None
        """One for all of them."""
        self._outgoing: deque[bytes] = deque()
        self._more = asyncio.Event()
        self._turns: asyncio.Queue[Delivered | Denied | Unreachable] = asyncio.Queue()
        self._pump = asyncio.ensure_future(self._run())

    @classmethod
    async def open(cls, wire: Wire, agent: AgentId, session: str | None = None) -> Self:
        """Raises Denied when the gateway refuses, Unreachable when it may work later."""
        query = {"stream": f"agents/{agent}/inbox", "session": session, "lines": "true"}
        return cls(await wire.open("/v1/subscribe", query), wire.place)

    async def close(self) -> None:
        """Close the socket; what was asked and not answered is unreachable."""
        self._pump.cancel()
        await asyncio.gather(self._pump, return_exceptions=True)
        await self._socket.close()

    async def ask(self, frame: Mapping[str, object | None]) -> ServerFrame:
        """Have something done; None in the frame is left out.

        Raises Denied, TooLarge, TimedOut; Unreachable when the line was lost before the answer came.
        """
        self._last_req = req = self._last_req + 1
        self._put({**frame, "reqId": req})
        asked = self._asked[req] = _Asked(self._loop.create_future(), self._loop.time() + REQUEST_WITHIN_S)
        if self._timer is None:
            self._timer = self._loop.call_at(asked.until_s, self._expire)
        try:
            return await asked.answer
        finally:
            del self._asked[req]

    def grant(self, credit: int) -> None:
        """Let so many more turns come."""
        self._put({"credit": credit})

    def turn_now(self) -> Delivered | None:
        """A turn that is here already."""
        if self._turns.empty():
            return None
        item = self._turns.get_nowait()
        if isinstance(item, Delivered):
            return item
        self._turns.put_nowait(item)  # the end, which ``turn`` tells
        return None

    async def turn(self) -> Delivered:
        """The next turn. Raises Unreachable when the line is lost, Denied when it will stay so."""
        item = await self._turns.get()
        if isinstance(item, Delivered):
            return item
        self._turns.put_nowait(item)  # whoever asks again hears it again
        raise item

    def _put(self, frame: Mapping[str, object | None]) -> None:
        if self.lost:
            raise self._unreachable()
        named = {name: value for name, value in frame.items() if value is not None}
        self._outgoing.append(bounded(_encode(named)))
        self._more.set()

    # --- the socket

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as owners:
                owners.create_task(self._write())
                owners.create_task(self._read())
        except* ConnectionClosed:
            pass
        finally:
            self._lose()

    async def _write(self) -> None:
        while True:
            await self._more.wait()
            await gathered(self._outgoing, FRAMES_ENOUGH)
            self._more.clear()
            while self._outgoing:
                await self._socket.send(self._message(), text=True)

    def _message(self) -> bytes:
        """As many frames as one message takes, at least one."""
        frames = [self._outgoing.popleft()]
        size = len(frames[0])
        while self._outgoing and size + len(self._outgoing[0]) < MESSAGE_CHARS_MAX:
            frames.append(self._outgoing.popleft())
            size += len(frames[-1]) + 1
        return b"\n".join(frames)

    async def _read(self) -> None:
        while True:
            message = await self._socket.recv(decode=False)
            for text in message.split(b"\n"):
                self._take(_decode(text))

    def _take(self, frame: ServerFrame) -> None:
        error = frame.error
        if frame.deliver is not None:
            self._turns.put_nowait(frame.deliver)
        elif error is not None and error.req_id is None:
            self._turns.put_nowait(_denied(error))
        else:
            req = frame.ok if error is None else error.req_id
            asked = self._asked.get(req) if isinstance(req, int) else None
            if asked is None or asked.answer.done():
                return  # nobody waits any more
            if error is None:
                asked.answer.set_result(frame)
            else:
                asked.answer.set_exception(_denied(error))

    def _expire(self) -> None:
        """Who has waited too long is told, and the timer set for who is next."""
        self._timer = None
        late = f"no answer in {REQUEST_WITHIN_S:.0f} s from {self._place}"
        for asked in self._asked.values():
            if asked.answer.done():
                continue
            if asked.until_s > self._loop.time():
                self._timer = self._loop.call_at(asked.until_s, self._expire)
                return
            asked.answer.set_exception(TimedOut(late))

    def _lose(self) -> None:
        self.lost = True
        self._outgoing.clear()
        if self._timer is not None:
            self._timer.cancel()
        for asked in self._asked.values():
            if not asked.answer.done():
                asked.answer.set_exception(self._unreachable())
        closed = self._socket.close_code
        self._turns.put_nowait(_replaced() if closed == _REPLACED else self._unreachable())

    def _unreachable(self) -> Unreachable:
        return Unreachable(f"the connection to {self._place} is lost", hint="is the gateway running?")


def _denied(error: ErrorRecord) -> Denied:
    return Denied(error.code, error.message, hint=error.hint, retryable=error.retryable)


def _replaced() -> Denied:
    return Denied(
        "session_replaced",
        "another program took over the session",
        hint="give each run of an agent its own session name",
    )
