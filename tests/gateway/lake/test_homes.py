"""Copies of another outbox are collected as if they were it, and checked with its own node's key."""

from contextlib import closing

import pytest

from auth.keys import SigningKey
from gateway.home import Home
from gateway.lake.homes import collect_copies, copied_nodes, node_of
from gateway.lake.lake import Lake
from outbox.errors import BadCheckpoint, NotFound
from outbox.ids import Epoch, NodeId
from outbox.journal import Journal
from outbox.records import Identity
from tests.gateway.outboxes import KEY, NOW_MS, STREAM, messages, verify


class Key:
    """The key of the stream in the role of a node's public key."""

    verify = staticmethod(verify)


@pytest.fixture
def home(tmp_path):
    home = Home.of({"GATEWAY_HOME": str(tmp_path / "home")})
    home.root.mkdir(parents=True)
    ours = Identity(STREAM.mesh, NodeId("seed"), Epoch("000001-0000000000ff"))
    with closing(Journal.create(home.journal, ours)) as journal:
        journal.begin()
        for page in messages(30).pages:
            journal.extend_copy(STREAM.node, page, NOW_MS)
        journal.commit()
    return home


def test_a_copy_is_collected_once_and_goes_on_where_it_stopped(home, tmp_path):
    lake = Lake(tmp_path / "lake")
    assert (node_of(home), copied_nodes(home)) == ("seed", [STREAM.node])
    seen = []
    done = collect_copies(home, {STREAM.node: Key}, lake, NOW_MS, progress=lambda *at: seen.append(at))
    assert (done[STREAM.node].rows, seen) == (30, [(STREAM.node, 30)])
    assert lake.verify(lambda _: verify).faults == ()
    again = collect_copies(home, {STREAM.node: Key}, lake, NOW_MS)
    assert again[STREAM.node].rows == 0


def test_a_copy_that_its_node_did_not_sign_is_refused(home, tmp_path):
    stranger = SigningKey(b"x" * 32).public
    assert stranger.raw != KEY.public_key().public_bytes_raw()
    with pytest.raises(BadCheckpoint):
        collect_copies(home, {STREAM.node: stranger}, Lake(tmp_path / "lake"), NOW_MS)


def test_a_home_without_a_copy_says_so(home, tmp_path):
    with pytest.raises(NotFound, match="no copy of the outbox of lab"):
        collect_copies(home, {NodeId("lab"): Key}, Lake(tmp_path / "lake"), NOW_MS)
