"""Entries follow a want: the one that counts, an earlier one, or none that there was."""

import pytest

from gateway.links import asking as asking_module
from gateway.links.asking import Asking, is_over
from gateway.wire.frames import Filter, Want
from outbox.chain import Checkpoint, Head
from outbox.errors import BadFrame, BrokenChain
from outbox.ids import Epoch, MeshId, NodeId, Seq
from stateroom.view import ForkView, NodeView, View

EPOCH = Epoch("000001-0123456789ab")
LATER = Epoch("000002-0123456789ab")
A, B = NodeId("a"), NodeId("b")


def test_only_the_latest_want_of_a_stream_counts() -> None:
    asking = Asking()
    assert asking.read(A, None, Filter.MINE) == Want(A, None, 0, Filter.MINE, 1)
    assert asking.expects(A, 1)
    assert asking.leave(A) == Want(A, None, 0, Filter.NONE, 2)
    assert not asking.expects(A, 1)
    assert asking.read(A, Head(EPOCH, Seq(7), b""), Filter.ALL) == Want(A, EPOCH, 7, Filter.ALL, 3)
    assert not asking.expects(A, 1)
    assert asking.expects(A, 3)


@pytest.mark.parametrize(("stream", "ask"), [(A, 2), (B, 1), (A, 9)])
def test_entries_that_nobody_asked_for_are_forged(stream: NodeId, ask: int) -> None:
    asking = Asking()
    asking.read(A, None, Filter.ALL)
    asking.leave(A)
    with pytest.raises(BadFrame):
        asking.expects(stream, ask)


def test_what_was_asked_long_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking_module, "ASKS_KEPT", 2)
    asking = Asking()
    for _ in range(3):
        asking.read(A, None, Filter.ALL)
    assert not asking.expects(A, 2)
    with pytest.raises(BadFrame):
        asking.expects(A, 1)


def test_no_page_of_a_want_comes_again() -> None:
    asking = Asking()
    asking.read(A, Head(EPOCH, Seq(7), b""), Filter.ALL)
    for seq in (8, 12):
        asking.goes_on(A, checkpoint(seq))
        with pytest.raises(BrokenChain):
            asking.goes_on(A, checkpoint(seq))
    with pytest.raises(BrokenChain):
        asking.goes_on(A, checkpoint(7))
    asking.goes_on(A, checkpoint(1, LATER))
    asking.read(A, Head(EPOCH, Seq(7), b""), Filter.ALL)
    asking.goes_on(A, checkpoint(8))


def mesh_with(epoch: Epoch | None, *forked: Epoch) -> View:
    node = NodeView(node=A, public_key=b"", role="member", outbox_epoch=epoch)
    forks = {A: tuple(ForkView(epoch=each, seq=Seq(3)) for each in forked)}
    return View(version=1, mesh="m", nodes={A: node}, agents={}, cursors={}, forks=forks)


@pytest.mark.parametrize(
    ("announced", "forked", "over"),
    [
        (None, (), {1: False, 2: False}),
        (EPOCH, (), {1: False, 2: False}),
        (LATER, (), {1: True, 2: False}),
        (EPOCH, (EPOCH,), {1: True, 2: True}),
        (LATER, (LATER,), {1: True, 2: False}),
    ],
)
def test_an_epoch_that_was_written_twice_is_read_no_further(
    announced: Epoch | None, forked: tuple[Epoch, ...], over: dict[int, bool]
) -> None:
    """Version 1 cannot prove it: its reader was refused for ever, or refused for ever (seed 60035)."""
    view = mesh_with(announced, *forked)
    assert {version: is_over(view, A, EPOCH, version) for version in (1, 2)} == over


def checkpoint(seq: int, epoch: Epoch = EPOCH) -> Checkpoint:
    return Checkpoint(MeshId("m"), A, epoch, Seq(seq), b"", b"")
