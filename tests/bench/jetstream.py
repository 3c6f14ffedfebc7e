"""The peer: two NATS servers with JetStream on files, joined by a leaf connection, doing the same steps.

A publishes a request (acknowledged by server 1 once it is stored there); server 2 sources it into its own
stream; the answerer beside server 2 publishes ``accepted``, the reply and ``processed`` there, all stored,
and acknowledges the request; server 1 sources them; A acknowledges them. ``sync_interval: always`` syncs each
message before its ACK; without it the server syncs every two minutes, which is not durable. A server keeps
what its consumers have acknowledged without a sync, so whoever wants to know that a turn has ended needs the
message.
"""

import asyncio
import itertools
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

STARTS_WITHIN_S = 20.0
BODY = b"x" * 492
ACCEPTED, REPLY, PROCESSED = b"A", b"R", b"P"
"""What the first byte of an answer says."""


def why_not() -> str:
    """Why the peer cannot be measured here; empty when it can."""
    try:
        import nats  # noqa: F401 - only whether it is there
    except ImportError:
        return "the Python package nats-py is not installed"
    path = shutil.which(
        "nats-server", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/usr/sbin"
    )
    if path is None:
        return "no nats-server on this machine"
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=10)
    version = done.stdout.strip().rpartition("v")[2].split(".")
    if [int(part) for part in version[:2]] < [2, 10]:
        return f"{path} is {done.stdout.strip()}: it knows no sync_interval, so it is not durable"
    return ""


def _server() -> str:
    path = shutil.which(
        "nats-server", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/usr/sbin"
    )
    assert path is not None
    return path


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _configure(folder: Path, name: str, port: int, leaf: str, *, always: bool) -> Path:
    sync = "sync_interval: always" if always else ""
    path = folder / f"{name}.conf"
    path.write_text(
        f"listen: 127.0.0.1:{port}\nserver_name: {name}\n"
        f'jetstream {{\n store_dir: "{folder / name}"\n domain: {name}\n {sync}\n}}\n'
        f"leafnodes {{ {leaf} }}\n"
    )
    return path


class JetStreamPair:
    """Agent A of the pair; ``ask`` is one round trip."""

    def __init__(self, stream: Any, subscription: Any, last: bytes) -> None:
        self._stream = stream
        self._subscription = subscription
        self._last = last
        self._numbers = itertools.count()
        self._waiting: dict[bytes, asyncio.Future[None]] = {}

    async def ask(self) -> None:
        """Request, stored; what answers it, stored at the other side and here."""
        number = b"%012d" % next(self._numbers)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._stream.publish_async("a.out", number + BODY, wait_stall=30)
        await future

    async def listen(self) -> None:
        """Take what comes back."""
        async for message in self._subscription.messages:
            await message.ack()
            if message.data[:1] == self._last:
                future = self._waiting.pop(message.data[1:13], None)
                if future is not None and not future.done():
                    future.set_result(None)


@asynccontextmanager
async def jetstream_pair(
    folder: Path, *, always: bool, prefix: Sequence[str] = (), processed: bool = True
) -> AsyncIterator[JetStreamPair]:
    """Two servers, their streams, and the answerer in a process of its own; without ``processed`` it stores
    ``accepted`` and the reply alone."""
    import nats

    folder.mkdir()
    near, far, leaf = _port(), _port(), _port()
    near_conf = _configure(folder, "near", near, f"listen: 127.0.0.1:{leaf}", always=always)
    far_conf = _configure(
        folder, "far", far, f'remotes [ {{ url: "nats-leaf://127.0.0.1:{leaf}" }} ]', always=always
    )
    processes: list[subprocess.Popen[bytes]] = []
    async with AsyncExitStack() as stack:
        stack.callback(_end, processes)
        for conf, port in ((near_conf, near), (far_conf, far)):
            words = [*prefix, _server(), "-c", str(conf)]
            processes.append(subprocess.Popen(words, stderr=subprocess.DEVNULL))
            await _listening(port)
        a, b = [await nats.connect(f"nats://127.0.0.1:{port}") for port in (near, far)]
        stack.push_async_callback(a.close)
        stack.push_async_callback(b.close)
        await _streams(a.jetstream(), b.jetstream())
        words = [sys.executable, "-m", "tests.bench.jetstream_answerer", f"nats://127.0.0.1:{far}"]
        words += ["processed"] if processed else []
        answerer = subprocess.Popen(words, stdout=subprocess.PIPE)
        processes.insert(0, answerer)
        assert answerer.stdout is not None
        assert await asyncio.to_thread(answerer.stdout.readline) == b"ready\n"
        answers = await subscription(a.jetstream(), "INA", "b.out")
        pair = JetStreamPair(a.jetstream(), answers, last=PROCESSED if processed else REPLY)
        listening = asyncio.ensure_future(pair.listen())
        stack.callback(listening.cancel)
        await asyncio.wait_for(pair.ask(), STARTS_WITHIN_S)
        yield pair


@asynccontextmanager
async def jetstream_server(folder: Path, *, always: bool) -> AsyncIterator[Any]:
    """A connection to one server."""
    import nats

    folder.mkdir()
    port = _port()
    conf = _configure(folder, "one", port, f"listen: 127.0.0.1:{_port()}", always=always)
    process = subprocess.Popen([_server(), "-c", str(conf)], stderr=subprocess.DEVNULL)
    try:
        await _listening(port)
        connection = await nats.connect(f"nats://127.0.0.1:{port}")
        yield connection
        await connection.close()
    finally:
        _end([process])


async def subscription(stream: Any, name: str, subject: str) -> Any:
    """A durable push consumer with explicit ACKs."""
    from nats.js.api import AckPolicy, ConsumerConfig

    return await stream.subscribe(
        subject,
        durable=f"of-{name}",
        stream=name,
        manual_ack=True,
        config=ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, max_ack_pending=5000),
        pending_msgs_limit=-1,
        pending_bytes_limit=-1,
    )


async def _streams(near: Any, far: Any) -> None:
    from nats.js.api import ExternalStream, StorageType, StreamConfig, StreamSource

    files = StorageType.FILE
    await near.add_stream(StreamConfig(name="OUTA", subjects=["a.out"], storage=files))
    await far.add_stream(StreamConfig(name="OUTB", subjects=["b.out"], storage=files))
    for stream, name, source, domain in ((far, "INB", "OUTA", "near"), (near, "INA", "OUTB", "far")):
        external = StreamSource(name=source, external=ExternalStream(api=f"$JS.{domain}.API"))
        await _until_added(stream, StreamConfig(name=name, storage=files, sources=[external]))


async def _until_added(stream: Any, config: Any) -> None:
    """The leaf connection may not be up yet."""
    import nats.errors

    async with asyncio.timeout(STARTS_WITHIN_S):
        while True:
            with suppress(nats.errors.Error):
                await stream.add_stream(config)
                return
            await asyncio.sleep(0.1)


async def _listening(port: int) -> None:
    async with asyncio.timeout(STARTS_WITHIN_S):
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.05)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()
