"""Agent B beside the far NATS server: ``accepted``, a reply, ``processed``, all stored; then the ACK.

usage: jetstream_answerer.py URL [processed]
"""

import asyncio
import sys

import nats
import uvloop

from tests.bench.jetstream import ACCEPTED, PROCESSED, REPLY, subscription


async def main(url: str, processed: bool) -> None:
    """Answer until terminated."""
    connection = await nats.connect(url)
    stream = connection.jetstream()
    requests = await subscription(stream, "INB", "a.out")
    print("ready", flush=True)
    async for message in requests.messages:
        number = message.data[:12]
        await stream.publish_async("b.out", ACCEPTED + number, wait_stall=30)
        stored = await stream.publish_async("b.out", REPLY + message.data, wait_stall=30)
        if processed:
            stored = await stream.publish_async("b.out", PROCESSED + number, wait_stall=30)
        stored.add_done_callback(lambda _, message=message: asyncio.ensure_future(message.ack()))


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], "processed" in sys.argv[2:]))
