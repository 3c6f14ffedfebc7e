"""Copies of other outboxes: in the transaction of the cursor, complete, bounded."""

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.engine.effects import CopyChanged, StreamBroken
from gateway.engine.inputs import PageRead
from gateway.engine.limits import TRIM_EVERY_MS
from gateway.engine.policy import MirrorPolicy, Policy
from outbox.chain import Head
from outbox.ids import Epoch, NodeId, Seq
from outbox.readership import excerpt

EPOCH = Epoch("000001-0123456789ab")


def mirroring(world: Any, **policy: Any) -> Any:
    """``b`` copies what it reads."""
    world.policy = replace(world.policy, mirror=MirrorPolicy(**({"nodes": "all"} | policy)))
    world.restart("b")
    return world


def bodies(world: Any) -> list[bytes]:
    page = world.store("b").read_copy(NodeId("a"), Head(EPOCH, Seq(0), b""), 10_000, 1 << 30)
    return [entry.body for entry in page.entries] if page is not None else []


@pytest.mark.parametrize(
    ("nodes", "held"),
    [("all", True), ("none", False), (("a",), True), (("c", "d"), False), ((), False)],
)
def test_a_policy_names_nodes(nodes: Any, held: bool) -> None:
    assert MirrorPolicy(nodes=nodes).holds(NodeId("a")) is held
    assert not Policy().mirror.holds(NodeId("a"))


def test_what_is_handled_is_copied_in_the_same_transaction(world: Any) -> None:
    mirroring(world)
    for number in range(3):
        world.sent("a", "ann", "bob", f'{{"n":{number}}}'.encode())
    page = world.page("b", "a")
    world.tick("b", PageRead("a", page), lost=True)
    assert world.store("b").copies() == []
    changed = [e for e in world.tick("b", PageRead("a", page)) if isinstance(e, CopyChanged)]
    assert changed == [CopyChanged("a", world.store("b").copy("a"), page)]
    assert bodies(world) == [entry.body for entry in page.entries]
    assert world.store("b").copy("a").last == world.store("b").cursor("a").seq
    assert not [e for e in world.tick("b", PageRead("a", page)) if isinstance(e, CopyChanged)]


def test_a_copy_takes_no_page_with_a_body_left_out(world: Any) -> None:
    mirroring(world)
    world.sent("a", "ann", "bob")
    part = excerpt(world.page("b", "a"), NodeId("c"))
    (broken,) = [e for e in world.tick("b", PageRead("a", part)) if isinstance(e, StreamBroken)]
    assert broken.code == "body_withheld"
    assert world.store("b").cursor("a") is None


def test_copies_are_bounded_by_bytes_over_all_of_them(world: Any) -> None:
    mirroring(world, bytes_max=40_000)
    for number in range(200):
        world.sent("a", "ann", "bob", f'"{number:03}{"x" * 500}"'.encode())
        world.pull("b", "a")
    copy = world.store("b").copy("a")
    assert copy.first > 1
    assert copy.bytes <= 40_000
    assert copy.last == world.store("b").cursor("a").seq
    world.restart("b")
    world.sent("a", "ann", "bob")
    world.pull("b", "a")
    assert world.store("b").copy("a").last == copy.last + 1


def test_copies_are_bounded_by_age(world: Any) -> None:
    mirroring(world, age_ms=3_600_000)
    world.sent("a", "ann", "bob")
    world.pull("b", "a")
    world.advance(3_600_001 + TRIM_EVERY_MS)
    world.sent("a", "ann", "bob")
    world.pull("b", "a")
    copy = world.store("b").copy("a")
    assert copy is None or copy.first > 1
