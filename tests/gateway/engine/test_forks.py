"""Nodes that wrote two histories: proved by whoever meets both, judged by what they say next."""

from copy import deepcopy
from typing import Any

from msgspec.structs import replace

from gateway.engine.effects import EpochBegan, ForkFound
from gateway.engine.inputs import PageRead
from gateway.engine.policy import MirrorPolicy, Policy
from outbox.chain import Head
from outbox.forks import proves_fork
from outbox.ids import Epoch, NodeId, Seq, make_epoch
from outbox.records import DeliveryState, TurnState
from outbox.store import Store
from stateroom.view import ForkView

A, B = NodeId("a"), NodeId("b")
S, T = DeliveryState, TurnState


# --- forks


def fork(mesh: Any) -> tuple[Store, Store]:
    """Two histories of ``a``'s outbox that part after what both nodes have read."""
    mesh.sent("a", "ann", "bob")
    mesh.meet()
    copy = deepcopy(mesh.store("a"))
    mesh.sent("a", "ann", "bob", b'"original"')
    original = mesh.store("a")
    mesh.come_back("a", copy)
    mesh.nodes["a"].own.shown = True
    mesh.sent("a", "ann", "bob", b'"copy"')
    return original, copy


def proofs(effects: list[Any]) -> list[Any]:
    return [effect.proof for effect in effects if isinstance(effect, ForkFound)]


def test_two_histories_are_proved_by_whoever_meets_both(mesh: Any, only: Any) -> None:
    original, copy = fork(mesh)
    after = mesh.store("b").cursor(A)
    mesh.tick("b", PageRead(A, original.read(after, 100, 1 << 20)))
    (proof,) = proofs(mesh.tick("b", PageRead(A, copy.read(after, 100, 1 << 20))))
    assert proves_fork(proof, mesh.view().mesh, A, mesh.nodes["a"].verify)
    assert ("fork", f"a/{mesh.epoch_of('a')}") in mesh.incidents("b")


def test_a_page_that_ends_before_what_was_read_is_no_proof_yet(mesh: Any) -> None:
    original, copy = fork(mesh)
    after = mesh.store("b").cursor(A)
    mesh.tick("b", PageRead(A, original.read(after, 100, 1 << 20)))
    mesh.sent("a", "ann", "bob")
    page = copy.read(copy.head_at(copy.head().epoch, Seq(copy.head().seq - 1)), 100, 1 << 20)
    assert proofs(mesh.tick("b", PageRead(A, page))) == [] or page.before


def test_a_page_without_its_hash_before_is_refused_and_proves_nothing(mesh: Any) -> None:
    original, copy = fork(mesh)
    after = mesh.store("b").cursor(A)
    mesh.tick("b", PageRead(A, original.read(after, 100, 1 << 20)))
    bare = replace(copy.read(after, 100, 1 << 20), before=b"")
    assert proofs(mesh.tick("b", PageRead(A, bare))) == []


def test_a_fork_that_a_seed_brings_is_the_writers_and_not_the_seeds(make_world: Any) -> None:
    """Writer and seed went back together: what the seed holds of the writer is its second history."""
    mirror = Policy(mirror=MirrorPolicy(nodes=(A,)))
    mesh = make_world("a", "b", "c", policy=mirror)
    for node, agent in (("a", "ann"), ("b", "bob"), ("c", "cid")):
        mesh.live(node, agent)
    original, copy = fork(mesh)
    after = mesh.store("c").cursor(A)
    mesh.tick("c", PageRead(A, original.read(after, 100, 1 << 20)))
    mesh.tick("b", PageRead(A, copy.read(after, 100, 1 << 20)))
    brought = mesh.store("b").read_copy(A, after, 100, 1 << 20)
    (proof,) = proofs(mesh.tick("c", PageRead(A, brought, relay=B)))
    assert proves_fork(proof, mesh.view().mesh, A, mesh.nodes["a"].verify)
    assert ("fork", f"a/{mesh.epoch_of('a')}") in mesh.incidents("c")
    assert "relay_tampered" not in {kind for kind, _ in mesh.incidents("c")}


def test_the_victim_of_a_copy_proves_it_and_goes_on_in_a_new_epoch(mesh: Any, only: Any) -> None:
    original, _ = fork(mesh)
    after = mesh.store("b").cursor(A)
    mesh.tick("b", PageRead(A, original.read(after, 100, 1 << 20)))
    effects = mesh.answer("a", by="b")
    (proof,) = proofs(effects)
    assert proves_fork(proof, mesh.view().mesh, A, mesh.nodes["a"].verify)
    assert only(effects, EpochBegan)


def forked(mesh: Any) -> Epoch:
    """The room proves that ``a`` has forked its epoch."""
    epoch = mesh.epoch_of("a")
    mesh.forks[A] = (ForkView(epoch=epoch, seq=Seq(1)),)
    return epoch


def test_nothing_more_is_read_of_a_forked_epoch(mesh: Any) -> None:
    forked(mesh)
    mesh.see("b")
    before = mesh.store("b").cursor(A)
    mesh.sent("a", "ann", "bob")
    page = mesh.page("b", "a")
    effects = mesh.tick("b", PageRead(A, page))
    assert [effect.code for effect in effects if hasattr(effect, "code")] == ["stream_forked"]
    assert mesh.store("b").cursor(A) == before


def test_a_fork_is_a_rollback_once_its_key_announces_a_later_epoch(mesh: Any) -> None:
    epoch = forked(mesh)
    mesh.see("b")
    assert ("fork", f"a/{epoch}") in mesh.incidents("b")
    mesh.members[A] = replace(mesh.members[A], outbox_epoch=make_epoch(2, b"\x02" * 6))
    mesh.see("b")
    assert ("fork", f"a/{epoch}") not in mesh.incidents("b")
    assert mesh.store("b").incident("rollback", f"a/{epoch}") is not None


def test_a_proof_in_the_room_makes_the_node_itself_begin_a_new_epoch(mesh: Any, only: Any) -> None:
    epoch = forked(mesh)
    mesh.see("a")
    assert ("own_stream_forked", f"a/{epoch}") in mesh.incidents("a")
    assert only(mesh.wake("a"), EpochBegan)
    mesh.meet()
    assert mesh.store("b").cursor(A) == mesh.store("a").head()


def test_another_epoch_of_the_same_ordinal_is_no_continuation(mesh: Any) -> None:
    mesh.sent("a", "ann", "bob")
    mesh.meet()
    before = mesh.store("b").cursor(A)
    wiped = deepcopy(mesh.store("a"))
    wiped.begin()
    wiped.begin_epoch(make_epoch(2, b"\x02" * 6))
    wiped.commit()
    mesh.come_back("a", wiped)
    mesh.sent("a", "ann", "bob")
    page = wiped.read(Head(wiped.head().epoch, Seq(0), b""), 100, 1 << 20)
    stranger = replace(page, epoch=make_epoch(1, b"\x07" * 6))
    effects = mesh.tick("b", PageRead(A, stranger))
    assert [effect.code for effect in effects if hasattr(effect, "code")] == ["foreign_epoch"]
    assert mesh.store("b").cursor(A) == before
    assert ("stream_recreated", f"a/{stranger.epoch}") in mesh.incidents("b")
