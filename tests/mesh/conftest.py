"""Meshes of real gateway processes."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.mesh.processes import ENGINE_HOST, Node

MakeNode = Callable[..., Node]


@pytest.fixture
def mesh_dir() -> Iterator[Path]:
    """A directory with a short path: sockets lie in it."""
    with tempfile.TemporaryDirectory(prefix="gm-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.fixture
def make_node(mesh_dir: Path) -> Iterator[MakeNode]:
    """Nodes that do not run yet; whatever runs at the end is killed by its process id."""
    made: list[Node] = []

    def make(name: str, **settings: object) -> Node:
        made.append(Node(name, mesh_dir, **settings))
        return made[-1]

    yield make
    for node in made:
        node.kill()


@pytest.fixture
def engine_host() -> str:
    """Where gateways write their journals; a test may be run with each (``parametrize``)."""
    return ENGINE_HOST


@pytest.fixture
async def vps(make_node: MakeNode, engine_host: str) -> Node:
    """A mesh of one running gateway."""
    node = make_node("vps", **{"engine.host": engine_host})
    node.found()
    node.start()
    return await node.ready()


@pytest.fixture
async def pair(vps: Node, make_node: MakeNode, engine_host: str) -> tuple[Node, Node]:
    """``vps`` with agent ``ada`` and ``mbp`` with agent ``bob``, linked, each aware of both."""
    mbp = make_node("mbp", **{"engine.host": engine_host})
    await mbp.join(vps)
    mbp.start()
    await mbp.ready()
    await vps.add_agents("ada")
    await mbp.add_agents("bob")
    for node in (vps, mbp):
        await node.sees("ada", "bob")
    await vps.linked("mbp")
    await mbp.linked("vps")
    return vps, mbp
