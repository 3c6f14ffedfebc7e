"""How long it takes until nobody has to do with a node that was put out: printed, never judged.

``node revoke`` is asked of a seed; every other gateway of the mesh, linked all to all, is looked at until it
says that the node is out, and until its link with it is closed.
"""

import asyncio
import time
from pathlib import Path

import pytest

from tests.mesh.processes import READY_WITHIN_S, Node, until

pytestmark = [pytest.mark.bench, pytest.mark.timeout(300)]

MEMBERS = 6


async def out(node: Node) -> bool:
    async with node.client() as gateway:
        return any(row.node == "m1" and row.revoked for row in await gateway.nodes())


async def unlinked(node: Node) -> bool:
    async with node.client() as gateway:
        return all(link.node != "m1" for link in (await gateway.status()).links)


async def mesh_of(place: Path, made: list[Node]) -> list[Node]:
    seed = Node("seed", place)
    made.append(seed)
    seed.found()
    seed.start()
    await seed.ready()
    for number in range(1, MEMBERS + 1):
        node = Node(f"m{number}", place)
        made.append(node)
        await node.join(seed)
        node.start()
        await node.ready()
    for node in made:
        await node.linked(*(other.name for other in made if other is not node))
    return made


async def test_until_nobody_has_to_do_with_a_node_that_was_put_out(disk: Path) -> None:
    made: list[Node] = []
    try:
        seed, m1, *others = await mesh_of(disk, made)
        began = time.monotonic()

        async def when(look, node: Node) -> float:
            await until(lambda: look(node), READY_WITHIN_S, f"{node.name} has heard")
            return time.monotonic() - began

        async with seed.client() as gateway:
            await gateway.revoke_node("m1", reason="bench")
        said = time.monotonic() - began
        knows, cut, itself = await asyncio.gather(
            asyncio.gather(*(when(out, node) for node in others)),
            asyncio.gather(*(when(unlinked, node) for node in (seed, *others))),
            when(out, m1),
        )
        print(f"\nA mesh of {len(made)} gateways, one is put out; seconds since it was asked for")
        print(f"  the seed has written and said it         {said:6.2f}")
        print(f"  others know: first, last                 {min(knows):6.2f} {max(knows):6.2f}")
        print(f"  their links with it are closed: last     {max(cut):6.2f}   (2 s are promised)")
        print(f"  the node itself knows                    {itself:6.2f}")
    finally:
        for node in made:
            node.kill()
