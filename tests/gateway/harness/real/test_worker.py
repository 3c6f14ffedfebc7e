"""An agent of a run, against a gateway that answers as it is told."""

import asyncio
from pathlib import Path

import msgspec
from websockets.asyncio.server import ServerConnection, unix_serve

from gateway.clock import Clock
from gateway.harness.real.habit import Habit, agent_of
from gateway.harness.real.worker import Worker
from gateway.home import Home, private_directory, write_private
from gateway.judging.witness import Witness
from outbox.ids import NodeId

NODE = NodeId("n1")
REFUSAL = {"error": {"code": "storage_full", "message": "no space left", "hint": "", "retryable": True}}
LEAVES_WITHIN_S = 30.0


def taking() -> asyncio.Task[object]:
    """Who waits for the turns."""
    return next(
        task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__qualname__", "") == "Worker._take"
    )


async def test_who_is_refused_when_it_is_told_to_leave_leaves(mesh_dir: Path) -> None:
    """The refusal comes first, and its end is under way when the cancellation comes."""
    home = Home(mesh_dir / "home", mesh_dir / "run")
    home.create()
    private_directory(home.runtime)
    write_private(home.token(agent_of(Habit.PROMPT, NODE)), b"token")
    worker = Worker(Habit.PROMPT, NODE, home, seed=1, witness=Witness(), clock=Clock())
    connections = 0

    async def gateway(socket: ServerConnection) -> None:
        nonlocal connections
        connections += 1
        await socket.recv()  # its credit
        taking().add_done_callback(lambda _: life.cancel())
        await socket.send(msgspec.json.encode(REFUSAL), text=True)
        await socket.wait_closed()

    async with unix_serve(gateway, str(home.socket)):
        life = asyncio.create_task(worker.run())
        done, _ = await asyncio.wait({life}, timeout=LEAVES_WITHIN_S)
    assert done
    assert connections == 1
