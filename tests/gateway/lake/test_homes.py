"""Copies of another outbox are collected as if they were it, and checked with its own node's key."""

from contextlib import closing

import pytest
from msgspec.structs import replace

from auth.keys import SigningKey
from gateway.home import Home
from gateway.lake.ended import ends
from gateway.lake.homes import collect_copies, copied_nodes, node_of
from gateway.lake.lake import Lake
from outbox.errors import BadCheckpoint, NotFound
from outbox.ids import Epoch, NodeId
from outbox.journal import Journal
from outbox.records import Identity
from stateroom.view import RevocationView, View
from tests.gateway.outboxes import KEY, NOW_MS, STREAM, messages, verify


def seen_as(*words):
    """The mesh, in which the node of the stream was put out with these words, or with none is admitted."""
    out = {STREAM.node: words} if words else {}
    return View(version=1, mesh=STREAM.mesh, nodes={}, agents={}, cursors={}, revocations=out)


ALL = seen_as()


def out(last):
    return RevocationView(
        node=STREAM.node, public_key=b"k", ban=False, by="seed", reason="", last=last, next_epoch=1000
    )


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
    done = collect_copies(home, {STREAM.node: Key}, lake, NOW_MS, lambda *at: seen.append(at), view=ALL)
    assert (done[STREAM.node].rows, seen) == (30, [(STREAM.node, 30)])
    assert lake.verify(lambda _: verify).faults == ()
    again = collect_copies(home, {STREAM.node: Key}, lake, NOW_MS, view=ALL)
    assert again[STREAM.node].rows == 0


def test_a_copy_that_its_node_did_not_sign_is_refused(home, tmp_path):
    stranger = SigningKey(b"x" * 32).public
    assert stranger.raw != KEY.public_key().public_bytes_raw()
    with pytest.raises(BadCheckpoint):
        collect_copies(home, {STREAM.node: stranger}, Lake(tmp_path / "lake"), NOW_MS, view=ALL)


def test_a_home_without_a_copy_says_so(home, tmp_path):
    with pytest.raises(NotFound, match="no copy of the outbox of lab"):
        collect_copies(home, {NodeId("lab"): Key}, Lake(tmp_path / "lake"), NOW_MS, view=ALL)


@pytest.mark.parametrize("upto", [0, 1, 17, 30])
def test_of_who_was_put_out_as_much_is_collected_as_counts(home, tmp_path, upto):
    lake, checkpoints = Lake(tmp_path / "lake"), [page.checkpoint for page in messages(30, batch=1).pages]
    view = seen_as(out(checkpoints[upto - 1] if upto else None))
    for _ in range(2):
        collect_copies(home, {STREAM.node: Key}, lake, NOW_MS, view=view)
        cursor = lake.cursor(STREAM.mesh, STREAM.node)
        assert (cursor.seq if cursor else 0) == upto
        assert lake.verify(lambda _: verify).faults == ()
    assert ends(view) == {STREAM.node: upto}


def test_another_history_than_the_one_that_counts_is_not_collected(home, tmp_path):
    lake = Lake(tmp_path / "lake")
    other = replace([page.checkpoint for page in messages(30, batch=1).pages][16], hash=b"another")
    collect_copies(home, {STREAM.node: Key}, lake, NOW_MS, view=seen_as(out(other)))
    assert lake.cursor(STREAM.mesh, STREAM.node) is None
