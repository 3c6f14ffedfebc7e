"""Agent B beside the far NATS server: ``accepted`` and a reply to each request, stored; then its ACK."""

import asyncio
import sys

import nats
import uvloop

from tests.bench.jetstream import subscription


async def main(url: str) -> None:
    """Answer until terminated."""
    connection = await nats.connect(url)
    stream = connection.jetstream()
    requests = await subscription(stream, "INB", "a.out")
    print("ready", flush=True)
    async for message in requests.messages:
        await stream.publish_async("b.out", b"A" + message.data[:12], wait_stall=30)
        stored = await stream.publish_async("b.out", b"R" + message.data, wait_stall=30)
        stored.add_done_callback(lambda _, message=message: asyncio.ensure_future(message.ack()))


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
