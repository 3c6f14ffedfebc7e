import asyncio
import socket
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycrdt import Doc, Map, Provider
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve

from outbox.errors import WorldError
from stateroom.bodies import RoomMap
from stateroom.dialer import Backoff, Dialer, DialReport, DialState
from stateroom.outflow import Closed
from stateroom.sockets import recv_of, send_of


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_the_wait_is_jittered_below_a_doubling_bound(fractions: list[float]) -> None:
    backoff = Backoff(first_s=0.5, cap_s=30)
    for number, fraction in enumerate(fractions):
        assert 0 <= backoff.failed(fraction) <= min(30, 0.5 * 2**number)
    assert backoff.failures == len(fractions)
    backoff.succeeded()
    assert backoff.failed(1.0) == 0.5


class Dialling:
    """A dialler under test, its reports, and what its sessions saw."""

    def __init__(
        self, url: str, session: Callable, headers: Callable | None = None, **options: object
    ) -> None:
        self.attempts = 0
        self.reports: list[DialReport] = []
        self.dialer = Dialer(
            url,
            headers or self.headers,
            session,
            fraction=lambda: 0.0,
            backoff=Backoff(first_s=0.001),
            on_state=self.reports.append,
            **options,
        )
        self.task = asyncio.ensure_future(self.dialer.run())

    async def headers(self) -> dict[str, str]:
        self.attempts += 1
        return {"Authorization": f"AnsibleTicket {self.attempts}"}

    async def stop(self) -> None:
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task


async def test_each_attempt_brings_fresh_headers_and_the_link_comes_back(wait_until) -> None:
    seen: list[str] = []

    async def accept(connection: ServerConnection) -> None:
        seen.append(connection.request.headers["Authorization"])
        if len(seen) < 3:
            connection.transport.abort()
        await connection.wait_closed()

    async def session(connection: ClientConnection) -> None:
        await connection.wait_closed()
        raise ConnectionError

    async with serve(accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        dialling = Dialling(f"ws://127.0.0.1:{port}/x", session)
        await wait_until(lambda: len(seen) == 3)
        await wait_until(lambda: dialling.dialer.report.state is DialState.CONNECTED)
        await dialling.stop()
    assert seen == ["AnsibleTicket 1", "AnsibleTicket 2", "AnsibleTicket 3"]
    assert dialling.dialer.report.state is DialState.IDLE
    assert {report.state for report in dialling.reports} == set(DialState)


async def test_a_refusal_is_reported_with_its_status_and_body_and_tried_again(wait_until) -> None:
    def refuse(connection: ServerConnection, _: object) -> object:
        return connection.respond(401, "invalid_ticket")

    async with serve(lambda _: None, "127.0.0.1", 0, process_request=refuse) as server:
        port = server.sockets[0].getsockname()[1]
        dialling = Dialling(f"ws://127.0.0.1:{port}/", _unused)
        await wait_until(lambda: dialling.attempts >= 3)
        await dialling.stop()
    assert dialling.dialer.report.last_error == "HTTP 401 invalid_ticket"
    assert dialling.dialer.report.failures >= 2


async def test_a_dead_port_and_failing_headers_are_failed_attempts(wait_until) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        calls = 0

        async def headers() -> dict[str, str]:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise WorldError("no ticket")
            return {}

        dialling = Dialling(f"ws://127.0.0.1:{port}/", _unused, headers)
        await wait_until(lambda: calls >= 3)
        await dialling.stop()
    errors = {report.last_error for report in dialling.reports}
    assert "WorldError: no ticket" in errors
    assert any("ConnectionRefusedError" in error or "Multiple exceptions" in error for error in errors)


async def test_our_own_bugs_are_not_retried() -> None:
    async def accept(connection: ServerConnection) -> None:
        await connection.wait_closed()

    async def session(_: ClientConnection) -> None:
        raise ZeroDivisionError

    async with serve(accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ZeroDivisionError):
            await Dialling(f"ws://127.0.0.1:{port}/", session).task


async def test_a_session_whose_part_failed_leaves_a_task_that_can_wait_with_a_limit(wait_until) -> None:
    """A simulated world on Python 3.11.2: the next silent peer ended the dialler, and the link for ever."""

    async def accept(connection: ServerConnection) -> None:
        await connection.wait_closed()

    counted: list[int] = []

    async def fail() -> None:
        raise ConnectionResetError

    async def session(_: ClientConnection) -> None:
        task = asyncio.current_task()
        assert task is not None
        counted.append(task.cancelling())
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(fail())
        except* ConnectionResetError:
            pass

    async with serve(accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        dialling = Dialling(f"ws://127.0.0.1:{port}/", session, steady_s=0.0)
        await wait_until(lambda: len(counted) >= 3)
        await dialling.stop()
    assert set(counted) == {0}


async def test_a_dialler_that_is_stopped_while_a_part_fails_stops() -> None:
    async def accept(connection: ServerConnection) -> None:
        await connection.wait_closed()

    async def fail() -> None:
        dialling.task.cancel()
        raise ConnectionResetError

    async def session(_: ClientConnection) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(fail())
        except* ConnectionResetError:
            pass

    async with serve(accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        dialling = Dialling(f"ws://127.0.0.1:{port}/", session)
        async with asyncio.timeout(60):
            with pytest.raises(asyncio.CancelledError):
                await dialling.task
        assert dialling.attempts == 1


async def test_a_steady_session_ends_the_series_of_failures(wait_until) -> None:
    async def accept(connection: ServerConnection) -> None:
        await connection.wait_closed()

    opened = 0

    async def session(_: ClientConnection) -> None:
        nonlocal opened
        opened += 1

    async with serve(accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        dialling = Dialling(f"ws://127.0.0.1:{port}/", session, steady_s=0.0)
        await wait_until(lambda: opened >= 4)
        assert dialling.dialer.report.failures <= 1
        await dialling.stop()


async def test_rooms_meet_over_real_sockets_and_find_each_other_again(bench, wait_until) -> None:
    hub, leaf = await bench.room("n0"), await bench.room("n1")
    bench.found(hub)
    connections: list[ServerConnection] = []
    ended: list[Closed] = []

    async def accept(connection: ServerConnection) -> None:
        connections.append(connection)
        closed = await hub.serve(send_of(connection), recv_of(connection), peer="leaf")
        ended.append(closed)
        await connection.close(closed.code if closed.code != 1006 else 1011, closed.reason)

    async def session(connection: ClientConnection) -> None:
        await leaf.serve(send_of(connection), recv_of(connection), peer="hub")

    async with serve(accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        dialling = Dialling(f"ws://127.0.0.1:{port}/", session)
        await wait_until(lambda: "seed" in bench.indexes["n1"].view({}).nodes)
        connections[0].transport.abort()
        await wait_until(lambda: len(connections) == 2)
        hub.put(RoomMap.ADMISSIONS, "b", bench.mesh.admission("b"))
        await wait_until(lambda: "b" in bench.indexes["n1"].view({}).nodes)
        async with connect(f"ws://127.0.0.1:{port}/", proxy=None) as viewer:
            await viewer.send("text is no message of ours")
            await viewer.wait_closed()
            assert viewer.close_code == 1008
        doc = Doc()
        async with (
            connect(f"ws://127.0.0.1:{port}/", proxy=None) as socket_,
            Provider(doc, _Stock(socket_)) as stock,
        ):
            await stock.synced.wait()
            assert set(doc.get("admissions", type=Map)) == {"seed", "b"}
        await dialling.stop()


class _Stock:
    path = "state"

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.send = connection.send
        self.recv = connection.recv

    def __aiter__(self):
        return self._connection.__aiter__()


async def _unused(_: ClientConnection) -> None:
    raise AssertionError("no session expected")
