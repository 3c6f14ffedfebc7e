"""Agent B beside the second gateway: a reply for each message."""

import asyncio
import sys
from pathlib import Path

import uvloop

from gateway.client import GatewayClient
from gateway.client.turns import Turn

TEXT = "x" * 200


async def main(socket: Path, credit: int) -> None:
    """Answer until terminated."""
    async with (
        GatewayClient(socket=socket) as gateway,
        gateway.agent("answerer").turns("bench", credit=credit) as turns,
        asyncio.TaskGroup() as work,
    ):
        async for turn in turns:
            work.create_task(_answer(turn))


async def _answer(turn: Turn) -> None:
    await turn.reply(TEXT)


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1]), int(sys.argv[2])))
