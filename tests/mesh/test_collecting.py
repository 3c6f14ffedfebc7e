"""Collecting over links: a node that runs no gateway brings the outboxes of a mesh into a lake."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.exits import Exit
from gateway.judging.witness import Witness
from outbox.ids import NodeId
from spark.layout import EVENTS
from spark.sources import event_files
from tests.mesh.acting import talk
from tests.mesh.conftest import MakeNode
from tests.mesh.processes import Node, until

GATEWAY = Path(sys.executable).with_name("gateway")


@pytest.fixture
async def collector(pair: tuple[Node, Node], make_node: MakeNode) -> Node:
    """A third node of the mesh, which only collects."""
    node = make_node("col")
    await node.join(pair[0])
    return node


def command(node: Node, lake: Path, *words: str) -> list[str]:
    return [str(GATEWAY), "collect", "--lake", str(lake), "--links", "--json", *words]


async def collect(node: Node, lake: Path, *words: str) -> tuple[int, dict, str]:
    process = await asyncio.create_subprocess_exec(
        *command(node, lake, *words), env=os.environ | node.env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, json.loads(out) if out else {}, err.decode()


def held(lake: Path, node: str) -> int:
    """Up to where an outbox is in a lake that holds all of it."""
    found = sorted((lake / EVENTS).glob(f"sourceNodeId={node}/epoch=*/seq-*.parquet"))
    ranges = [tuple(map(int, path.stem.split("-")[1:])) for path in found]
    due = 1
    for first, last in ranges:
        assert first <= due, (node, ranges)
        due = last + 1
    return due - 1


def written(node: Node) -> int:
    journal = node.journal()
    try:
        return journal.head().seq
    finally:
        journal.close()


async def test_a_mesh_is_collected_over_links_and_again_only_what_is_new(
    pair: tuple[Node, Node], collector: Node, tmp_path: Path
) -> None:
    vps, mbp = pair
    await talk(vps, "ada", "bob", 5, Witness())
    code, found, errors = await collect(collector, tmp_path)
    assert (code, set(found)) == (Exit.OK, {"vps", "mbp"}), errors
    for node in pair:
        assert found[node.name]["flagged"] == 0
        assert held(tmp_path, node.name) == found[node.name]["events"] > 0
    code, found, _ = await collect(collector, tmp_path, "--from", "mbp")
    assert (code, set(found)) == (Exit.OK, {"mbp"})
    assert event_files(tmp_path).nodes == (NodeId("mbp"), NodeId("vps"))

    mbp.kill()
    await talk(vps, "ada", "bob", 8, Witness())
    code, found, errors = await collect(collector, tmp_path)
    assert (code, held(tmp_path, "vps")) == (Exit.OK, written(vps)), errors
    assert "mbp" in found, "the seed holds a copy"

    vps.kill()
    code, _, errors = await collect(collector, tmp_path)
    assert code == Exit.UNREACHABLE
    assert "no gateway answers" in errors


async def test_only_one_process_is_a_node_and_only_nodes_of_the_mesh_can_be_named(
    pair: tuple[Node, Node], collector: Node, tmp_path: Path
) -> None:
    code, _, errors = await collect(pair[1], tmp_path)
    assert code == Exit.FAILED
    assert "two cannot be one node" in errors
    assert "join a node of its own" in errors
    code, _, errors = await collect(collector, tmp_path, "--from", "nobody")
    assert code == Exit.NOTHING
    assert "nobody is no node of this mesh" in errors


async def test_following_goes_on_after_a_lost_link(
    pair: tuple[Node, Node], collector: Node, tmp_path: Path
) -> None:
    vps, _ = pair
    with subprocess.Popen(
        command(collector, tmp_path, "--follow"), env=os.environ | collector.env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            await talk(vps, "ada", "bob", 2, Witness())
            await until(lambda: caught_up(tmp_path, vps), 60, "the first messages are in the lake")
            vps.kill(signal.SIGKILL)
            vps.start()
            await vps.ready()
            await talk(vps, "ada", "bob", 4, Witness())
            await until(lambda: caught_up(tmp_path, vps), 90, "later ones are too")
        finally:
            process.send_signal(signal.SIGINT)
            print(*process.communicate(timeout=20))  # what a failure is explained by
    assert process.returncode == Exit.INTERRUPTED


async def caught_up(lake: Path, node: Node) -> bool:
    return 0 < written(node) == held(lake, node.name)
