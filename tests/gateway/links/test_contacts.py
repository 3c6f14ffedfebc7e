"""Whom a node dials: everybody in a small mesh, the seeds in a large one."""

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace

from auth.keys import SigningKey
from gateway.links.contacts import contacts, first_wait_s
from gateway.links.limits import DIRECT_PEERS_MAX, ROOM_PEERS_MAX
from gateway.links.reach import Issuer
from outbox.ids import MeshId, NodeId
from stateroom.dialer import Backoff
from stateroom.limits import BACKOFF_FIRST_S
from stateroom.view import NodeView, View

ME = NodeId("me")
KEY = SigningKey(bytes(32)).public


def mesh(count: int, *, seeds: int, dialable_seeds: bool = True) -> View:
    nodes = {}
    for number in range(count):
        seed = number < seeds
        name = NodeId(f"s{number:03}" if seed else f"n{number:03}")
        can = dialable_seeds or not seed
        nodes[name] = NodeView(
            node=name,
            public_key=KEY.raw,
            role="seed" if seed else "member",
            endpoints=(f"https://{name}.example",) if can else (),
        )
    nodes[ME] = NodeView(node=ME, public_key=KEY.raw, role="member")
    return View(version=1, mesh=MeshId("m" * 43), nodes=nodes, agents={}, cursors={})


def dialled(view: View, issuer: Issuer | None = None) -> list[str]:
    return [contact.node for contact in contacts(view, ME, issuer, loopback=False)]


def test_in_a_small_mesh_everybody_is_dialled_seeds_first() -> None:
    names = dialled(mesh(DIRECT_PEERS_MAX, seeds=2))
    assert len(names) == DIRECT_PEERS_MAX
    assert names[:2] == ["s000", "s001"]


def test_in_a_large_one_only_the_seeds() -> None:
    assert dialled(mesh(DIRECT_PEERS_MAX + 1, seeds=2)) == ["s000", "s001"]
    assert dialled(mesh(1_000, seeds=3)) == ["s000", "s001", "s002"]


def test_a_large_mesh_without_a_seed_to_dial_stays_in_one_piece() -> None:
    names = dialled(mesh(DIRECT_PEERS_MAX + 1, seeds=1, dialable_seeds=False))
    assert len(names) == ROOM_PEERS_MAX


def test_the_issuer_is_dialled_before_the_room_knows_it() -> None:
    issuer = Issuer(NodeId("vps"), "https://vps.example", KEY.text)
    assert dialled(mesh(0, seeds=0), issuer) == ["vps"]
    assert dialled(mesh(1_000, seeds=1), issuer) == ["vps", "s000"]


@pytest.mark.parametrize("url", ["http://[", "http://[::1", "http://a]b"])
def test_an_address_that_cannot_be_is_passed_over_for_the_next_one(url: str) -> None:
    """A member publishes what it likes, and every other one looks at it."""
    view = mesh(1, seeds=0)
    node = replace(view.nodes[NodeId("n000")], endpoints=(url, "https://n000.example"))
    view.nodes[NodeId("n000")] = node
    assert [contact.url for contact in contacts(view, ME, None, loopback=False)] == ["https://n000.example"]


def test_who_has_no_key_that_can_be_is_not_dialled() -> None:
    view = mesh(2, seeds=0)
    view.nodes[NodeId("n000")] = replace(view.nodes[NodeId("n000")], public_key=bytes(32))
    assert dialled(view) == ["n001"]


@pytest.mark.parametrize("nodes", [2, DIRECT_PEERS_MAX, 1_000, 10_000])
def test_the_first_wait_is_short_in_a_small_mesh_and_bounded_in_a_large_one(nodes: int) -> None:
    small = nodes <= DIRECT_PEERS_MAX
    assert first_wait_s(nodes) == BACKOFF_FIRST_S if small else BACKOFF_FIRST_S < first_wait_s(nodes) <= 30


@pytest.mark.parametrize("away_s", [0.0, 1.0, 5.0, 60.0, 600.0])
def test_a_thousand_peers_do_not_come_back_to_a_seed_at_once(away_s: float) -> None:
    """Each dials until the seed is there again; no second brings it a fifth of them."""
    nodes, chance = 1_000, Random(away_s)
    arrivals = Counter[int]()
    for _ in range(nodes):
        backoff, at_s = Backoff(first_s=first_wait_s(nodes)), 0.0
        while (at_s := at_s + backoff.failed(chance.random())) < away_s:
            pass
        arrivals[int(at_s)] += 1
    assert max(arrivals.values()) < nodes / 5
