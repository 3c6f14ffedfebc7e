"""What a node has said and forgotten is collected over links from all who had read it, as far as each had."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from gateway.cli.exits import Exit
from gateway.judging.witness import Witness
from gateway.lake.holes import Hole, holes
from gateway.lake.lake import Lake
from outbox.ids import epoch_ordinal
from outbox.journal import Journal
from outbox.limits import PAGE_ENTRIES_MAX
from tests.mesh.acting import talk
from tests.mesh.conftest import MakeNode
from tests.mesh.processes import Node, until
from tests.mesh.test_collecting import collect, copied, written
from tests.mesh.test_restores import in_epoch

pytestmark = pytest.mark.long


async def go(node: Node) -> None:
    node.start()
    await node.ready()


def reached(lake: Path, node: Node) -> dict[int, int]:
    """Ordinal of each epoch of its outbox in a lake → its last entry there."""
    journal = node.journal()
    try:
        mesh = journal.identity().mesh
    finally:
        journal.close()
    return {epoch_ordinal(head.epoch): head.seq for head in Lake(lake).ends(mesh, node.name)}


async def test_each_of_two_seeds_brings_what_it_has_of_an_epoch_that_its_writer_has_forgotten(
    pair: tuple[Node, Node], make_node: MakeNode, mesh_dir: Path, tmp_path: Path
) -> None:
    vps, mbp = pair
    lab, collector = make_node("lab", **{"mirror.nodes": "all"}), make_node("col")
    for node in (lab, collector):
        await node.join(vps, reads_all=True)
    await go(lab)
    await lab.linked("vps", "mbp")
    await talk(mbp, "bob", "bob", 2, Witness())
    for seed in (vps, lab):
        await until(lambda seed=seed: copied(seed, mbp), 60, f"{seed.name} has a copy")
    mbp.kill()
    shutil.copytree(mbp.home.root, mesh_dir / "copy")
    both_had = written(mbp)

    vps.kill()
    await go(mbp)
    await mbp.linked("lab")
    await talk(mbp, "bob", "bob", 3, Witness())
    await until(lambda: copied(lab, mbp), 60, "the other seed has more")
    one_had = written(mbp)
    assert one_had > both_had

    mbp.kill()
    shutil.rmtree(mbp.home.root)
    shutil.copytree(mesh_dir / "copy", mbp.home.root)
    await go(mbp)
    await in_epoch(mbp, 2)
    lab.kill()
    await go(vps)
    await mbp.linked("vps")
    await talk(mbp, "bob", "bob", 2, Witness())
    await until(lambda: copied(vps, mbp), 60, "the first seed goes on in the second epoch")
    mbp.kill()

    code, _, told = await collect(collector, tmp_path, "--from", "mbp")
    assert (code, reached(tmp_path, mbp)) == (Exit.OK, {1: both_had, 2: written(mbp)}), told
    vps.kill()  # so the other seed does not get to know the second epoch before it is asked
    await go(lab)
    code, _, told = await collect(collector, tmp_path, "--from", "mbp")
    assert (code, reached(tmp_path, mbp)) == (Exit.OK, {1: one_had, 2: written(mbp)}), told
    await go(vps)
    code, _, told = await collect(collector, tmp_path, "--from", "mbp")
    assert (code, reached(tmp_path, mbp)) == (Exit.OK, {1: one_had, 2: written(mbp)}), told
    assert Lake(tmp_path).verify(lambda _: mbp.key.public.verify).faults == ()
    other = tmp_path / "at-once"
    code, _, told = await collect(collector, other, "--from", "mbp")
    assert (code, reached(other, mbp)) == (Exit.OK, {1: one_had, 2: written(mbp)}), told


async def test_what_a_seed_had_let_go_of_is_had_from_its_writer_once_it_is_there(
    pair: tuple[Node, Node], make_node: MakeNode, tmp_path: Path
) -> None:
    vps, mbp = pair
    collector = make_node("col")
    await collector.join(vps, reads_all=True)
    await talk(
        mbp, "bob", "ada", PAGE_ENTRIES_MAX + 50, Witness()
    )  # the first page only says where it goes on
    await until(lambda: copied(vps, mbp), 60, "the seed has a copy")
    for node in pair:
        node.kill()
    with closing(Journal.open(vps.home.journal)) as journal:
        journal.begin()
        journal.trim_copy(next(copy for copy in journal.copies() if copy.source == mbp.name), 1)
        journal.commit()
    await go(vps)
    code, _, told = await collect(collector, tmp_path, "--from", "mbp")
    assert (code, reached(tmp_path, mbp), len(missing(tmp_path, mbp))) == (Exit.OK, {1: written(mbp)}, 1), (
        told
    )
    await go(mbp)
    code, _, told = await collect(collector, tmp_path, "--from", "mbp")
    assert (code, missing(tmp_path, mbp)) == (Exit.OK, []), told
    assert Lake(tmp_path).verify(lambda _: mbp.key.public.verify).faults == ()


def missing(lake: Path, node: Node) -> list[Hole]:
    journal = node.journal()
    try:
        return list(holes(Lake(lake), journal.identity().mesh, node.name))
    finally:
        journal.close()
