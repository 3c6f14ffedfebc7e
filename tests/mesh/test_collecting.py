"""Collecting over links: a node that runs no gateway brings the outboxes of a mesh into a lake."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from auth.keyring import Keyring
from gateway.cli.exits import Exit
from gateway.clock import Clock
from gateway.judging.witness import Witness
from gateway.lake.lake import Lake
from gateway.rooms import Rooms
from outbox.chain import sign_checkpoint
from outbox.forks import ForkProof
from outbox.ids import NodeId, epoch_ordinal
from spark.layout import EVENTS
from spark.sources import event_files
from tests.mesh.acting import all_accepted, talk
from tests.mesh.conftest import MakeNode
from tests.mesh.processes import Node, until

GATEWAY = Path(sys.executable).with_name("gateway")


@pytest.fixture
async def collector(pair: tuple[Node, Node], make_node: MakeNode) -> Node:
    """A third node of the mesh, which only collects."""
    node = make_node("col")
    await node.join(pair[0], reads_all=True)
    return node


async def test_a_member_that_was_not_invited_to_collect_is_refused(
    pair: tuple[Node, Node], make_node: MakeNode, tmp_path: Path
) -> None:
    member = make_node("mem")
    await member.join(pair[0])
    await talk(pair[0], "ada", "bob", 2, Witness())
    code, _, told = await collect(member, tmp_path / "lake")
    assert "mem wants what is for others" in told, (code, told)
    assert not list((tmp_path / "lake").rglob("*.parquet")), "nothing of anybody was read"


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
    await all_accepted(vps, 5)  # mbp has written its answers
    await until(lambda: copied(vps, mbp), 60, "the seed has a copy")
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


async def gateway(node: Node, *words: str) -> tuple[int, list[dict], str]:
    process = await asyncio.create_subprocess_exec(
        str(GATEWAY), "collect", *words, "--json", env=os.environ | node.env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


async def test_a_seed_s_home_brings_its_own_outbox_and_the_copies_that_it_holds(
    pair: tuple[Node, Node], tmp_path: Path
) -> None:
    vps, mbp = pair
    await talk(mbp, "bob", "ada", 3, Witness())
    await until(lambda: copied(vps, mbp), 60, "the seed has a copy")
    code, (found,), _ = await gateway(vps, "--lake", str(tmp_path / "own"))
    assert (code, set(found)) == (Exit.OK, {"vps"})
    code, (found,), errors = await gateway(vps, "--lake", str(tmp_path / "from"), "--from", "mbp")
    assert (code, set(found)) == (Exit.OK, {"mbp"}), errors
    assert held(tmp_path / "from", "mbp") == found["mbp"]["events"] == written(mbp)
    code, (found,), _ = await gateway(vps, "--lake", str(tmp_path / "all"), "--all")
    assert (code, set(found), event_files(tmp_path / "all").nodes) == (
        Exit.OK,
        {"vps", "mbp"},
        ("mbp", "vps"),
    )

    assert (await gateway(vps, "--lake", str(tmp_path), "--from", "nobody"))[0] == Exit.NOTHING
    for words in (("--all", "--from", "mbp"), ("--links", "--all")):
        assert (await gateway(vps, "--lake", str(tmp_path), *words))[0] == Exit.USAGE
    vps.kill()
    assert (await gateway(vps, "--lake", str(tmp_path / "all"), "--all"))[0] == Exit.UNREACHABLE
    assert (await gateway(vps, "--lake", str(tmp_path / "own")))[0] == Exit.OK


async def test_who_was_put_out_is_read_up_to_the_last_place_that_counts_from_a_copy(
    pair: tuple[Node, Node], collector: Node, tmp_path: Path
) -> None:
    vps, mbp = pair
    await talk(mbp, "bob", "ada", 3, Witness())
    await until(lambda: copied(vps, mbp), 60, "the seed has a copy")
    async with vps.client() as operator:
        done = await operator.revoke_node("mbp", reason="lost")
    assert done.last_seq > 0
    code, found, told = await collect(collector, tmp_path / "links")
    assert (code, set(found)) == (Exit.OK, {"vps", "mbp"}), told
    assert held(tmp_path / "links", "mbp") == found["mbp"]["events"] == done.last_seq
    assert f"mbp was put out: its outbox counts up to {done.last_seq}" in told
    code, found, told = await collect(collector, tmp_path / "links", "--from", "mbp")
    assert (code, held(tmp_path / "links", "mbp")) == (Exit.OK, done.last_seq), told
    code, (found,), told = await gateway(vps, "--lake", str(tmp_path / "home"), "--all")
    assert (code, set(found)) == (Exit.OK, {"vps", "mbp"}), told
    assert held(tmp_path / "home", "mbp") == done.last_seq
    assert f"mbp was put out: its outbox counts up to {done.last_seq}" in told


async def test_an_exported_outbox_is_collected_elsewhere_with_the_key_that_the_mesh_knows(
    pair: tuple[Node, Node], tmp_path: Path
) -> None:
    vps, mbp = pair
    await talk(mbp, "bob", "ada", 3, Witness())
    file, lake = tmp_path / "mbp.ndjson", str(tmp_path / "lake")
    exported = await asyncio.create_subprocess_exec(
        str(GATEWAY), "outbox", "export", "--raw", env=os.environ | mbp.env, stdout=subprocess.PIPE
    )
    file.write_bytes((await exported.communicate())[0])
    upto = written(mbp)
    code, (found,), errors = await gateway(vps, "--lake", lake, "--file", str(file))
    assert (code, set(found)) == (Exit.OK, {"mbp"}), errors
    assert held(Path(lake), "mbp") == found["mbp"]["events"] == upto
    for words in (("--follow",), ("--links",), ("--all",)):
        assert (await gateway(vps, "--lake", lake, "--file", str(file), *words))[0] == Exit.USAGE
    file.write_bytes(b"junk")
    code, _, errors = await gateway(vps, "--lake", lake, "--file", str(file))
    assert code == Exit.FAILED
    assert "no exported outbox" in errors


async def copied(seed: Node, writer: Node) -> bool:
    journal = seed.journal()
    try:
        copy = journal.copy(writer.name)
        return copy is not None and copy.last == written(writer)
    finally:
        journal.close()


async def test_following_a_home_tells_what_is_new_and_nothing_else(vps: Node, tmp_path: Path) -> None:
    await vps.add_agents("ada")
    lake, said = tmp_path / "lake", tmp_path / "said"
    words = [str(GATEWAY), "collect", "--lake", str(lake), "--follow", "--json"]

    def told() -> list[dict]:
        return [json.loads(line)["vps"] for line in said.read_bytes().splitlines() if line.endswith(b"}")]

    async def all_is_told() -> bool:
        return 0 < written(vps) == sum(each["events"] for each in told())

    with said.open("wb") as out, subprocess.Popen(words, env=os.environ | vps.env, stdout=out) as process:
        try:
            for count in (2, 5):
                await talk(vps, "ada", "ada", count, Witness())
                await until(all_is_told, 60, "all that is new was told")
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
    assert process.returncode == Exit.INTERRUPTED
    assert told()[-1]["head"] == held(lake, "vps")
    assert all(each["events"] for each in told()[1:])


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
            print(*process.communicate(timeout=60))  # what a failure is explained by
    assert process.returncode == Exit.INTERRUPTED


async def caught_up(lake: Path, node: Node) -> bool:
    return 0 < written(node) == held(lake, node.name)


async def test_what_a_forked_node_said_before_and_the_proof_are_collected_from_homes_and_over_links(
    pair: tuple[Node, Node], collector: Node, tmp_path: Path
) -> None:
    vps, mbp = pair
    await talk(vps, "ada", "bob", 1, Witness())
    await talk(mbp, "bob", "ada", 2, Witness())
    await all_accepted(vps, 1)  # mbp writes nothing more
    await until(lambda: copied(vps, mbp), 60, "the seed has a copy")
    vps.kill()
    proof = twice(mbp)
    await say_fork(vps, proof)
    code, (found,), told = await gateway(vps, "--lake", str(tmp_path / "home"))
    assert (code, set(found)) == (Exit.OK, {"vps"}), told
    assert "mbp has signed two histories of" in told
    vps.start()
    await vps.ready()
    await until(
        lambda: in_a_later_epoch(vps, mbp, proof), 60, "it goes on in a later epoch, and is read there"
    )
    code, _, told = await collect(collector, tmp_path / "links")
    assert code == Exit.OK, told
    assert "mbp has signed two histories of" in told
    for lake in ("home", "links"):
        (kept,) = event_files(tmp_path / lake).proofs
        assert (kept.node, kept.epoch, kept.seq) == ("mbp", proof.known.epoch, proof.known.seq)
    epochs = sorted(stream[1] for stream in Lake(tmp_path / "links").streams() if stream[0] == "mbp")
    assert [epoch_ordinal(epoch) for epoch in epochs] == [1, 2], "the earlier one came as well"
    ends = {head.epoch: head for head in Lake(tmp_path / "links").ends(proof.known.mesh, NodeId("mbp"))}
    assert ends[proof.known.epoch].seq >= proof.known.seq
    words = (str(GATEWAY), "lake", "verify", "--lake", str(tmp_path / "links"), "--home", str(mbp.home.root))
    verified = await asyncio.create_subprocess_exec(*words, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    assert await verified.wait() == Exit.OK, await verified.communicate()


async def in_a_later_epoch(seed: Node, writer: Node, proof: ForkProof) -> bool:
    journal = seed.journal()
    try:
        copy = journal.copy(writer.name)
        return copy is not None and copy.epoch > proof.known.epoch
    finally:
        journal.close()


def twice(node: Node) -> ForkProof:
    """Proof that a node has signed another end of its outbox, by its own key."""
    key = Keyring(node.home.keys).kept_node_key()
    journal = node.journal()
    try:
        who, head = journal.identity(), journal.head()
    finally:
        journal.close()
    known, other = (
        sign_checkpoint(who.mesh, who.node, replace(head, hash=digest), key.sign)
        for digest in (head.hash, b"x" * 32)
    )
    return ForkProof(known, other, other.hash)


async def say_fork(node: Node, proof: ForkProof) -> None:
    """As this node, which does not run: into the state room."""
    journal = node.journal()
    who = journal.identity()
    journal.close()
    rooms = Rooms(node.home.room, who, Keyring(node.home.keys).kept_node_key(), Clock())
    await rooms.load()
    async with rooms.open():
        rooms.say_fork(proof)
        await rooms.state.settled()
    rooms.close()
