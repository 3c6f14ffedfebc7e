import asyncio

from stateroom.outflow import LOST, SLOW, STOPPING, Outflow


async def test_frames_leave_in_order_until_the_end() -> None:
    outflow, sent = Outflow(), []

    async def send(frame: bytes) -> None:
        sent.append(frame)
        if frame == b"3":
            outflow.end(STOPPING)

    for frame in (b"1", b"2", b"3"):
        outflow.offer(frame)
    assert await outflow.pump(send, 5) == STOPPING
    assert sent == [b"1", b"2", b"3"]


async def test_a_queue_above_its_bounds_ends_the_connection_and_keeps_nothing() -> None:
    outflow = Outflow(bytes_max=10)
    for _ in range(5):
        outflow.offer(b"x" * 8)
    assert outflow.queued_bytes == 0
    assert await outflow.pump(_never, 5) == SLOW


async def test_one_large_frame_fits_into_an_empty_queue() -> None:
    outflow = Outflow(bytes_max=10)
    outflow.offer(b"x" * 1000)
    assert outflow.queued_bytes == 1000


async def test_many_small_frames_are_bounded_too() -> None:
    outflow = Outflow()
    for _ in range(2000):
        outflow.offer(b"")
    assert await outflow.pump(_never, 5) == SLOW


async def test_a_reader_that_takes_nothing_is_closed_after_the_timeout() -> None:
    outflow = Outflow()
    outflow.offer(b"x")
    assert await outflow.pump(_never, 0.01) == SLOW


async def test_a_lost_connection_is_reported() -> None:
    async def send(_: bytes) -> None:
        raise ConnectionResetError

    outflow = Outflow()
    outflow.offer(b"x")
    assert await outflow.pump(send, 5) == LOST


async def _never(_: bytes) -> None:
    await asyncio.Event().wait()
