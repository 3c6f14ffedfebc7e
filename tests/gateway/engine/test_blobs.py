"""Blobs: named only where they are, awaited where they are not, let go of when nobody names them."""

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from gateway.courier.limits import CourierLimits
from gateway.engine.awaited import WRONG_SIZE
from gateway.engine.bloblife import (
    BlobDropped,
    BlobKept,
    BlobLost,
    BlobsFit,
    BlobsFull,
    BlobsMissing,
    KeepBlob,
)
from gateway.engine.effects import Handed, Refused, Sent
from gateway.engine.inputs import LinkDown, LinkUp, Prune, StreamHead
from gateway.engine.limits import BLOB_GRACE_MS
from gateway.engine.policy import MirrorPolicy, Policy, Retention
from outbox.blobref import BlobId, BlobRef
from outbox.ids import MeshId, NodeId, Seq
from outbox.memory import MemoryStore
from outbox.records import Identity, TurnState

MESH = MeshId("mesh-" + "x" * 38)
SHA, OTHER = BlobId("ab" * 32), BlobId("cd" * 32)


def keep(world: Any, name: str, sha256: BlobId = SHA, size: int = 5, *, written: bool = True) -> Any:
    return world.ask(name, KeepBlob(next(world.reqs), sha256, size, written))


def handed(effects: list[Any]) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, Handed)]


def send(world: Any, to: str = "bob", size: int = 5, **rest: Any) -> Any:
    return world.send("a", "ann", to, payload=b"null", payload_ref=BlobRef(SHA, size), **rest)


def came(world: Any) -> list[Any]:
    """The blob has come to b: what follows."""
    return world.tick("b", KeepBlob(next(world.reqs), SHA, 5, written=True))


@pytest.fixture
def named(world: Any) -> Any:
    """``ann`` has sent ``bob``, who listens at ``b``, an event that names a blob; it has been read there."""
    world.listen("b", "bob")
    assert isinstance(keep(world, "a"), BlobKept)
    sent = send(world)
    assert isinstance(sent, Sent)
    world.event = sent.event_id
    world.read = world.pull("b", "a")
    return world


# --- the sender


@pytest.mark.parametrize(
    ("ref", "payload", "code"),
    [
        (BlobRef(OTHER, 5), b"null", "not_found"),
        (BlobRef(SHA, 6), b"null", "invalid_event"),
        (BlobRef(SHA, 5), b"1", "invalid_event"),
        (BlobRef(SHA, 5, "nonsense"), b"null", "invalid_event"),
        (BlobRef(BlobId("x"), 5), b"null", "invalid_id"),
    ],
)
def test_only_what_is_here_can_be_named(world: Any, ref: BlobRef, payload: bytes, code: str) -> None:
    keep(world, "a")
    refused = world.send("a", "ann", "bob", payload=payload, payload_ref=ref)
    assert isinstance(refused, Refused)
    assert refused.code == code
    assert world.said("a") == []


def test_asking_for_what_is_gone_is_no_upload(world: Any) -> None:
    assert keep(world, "a", written=False).code == "not_found"
    assert isinstance(keep(world, "a"), BlobKept)
    assert isinstance(keep(world, "a", written=False), BlobKept)
    assert world.ask("a", KeepBlob(next(world.reqs), BlobId("x"), 1, written=True)).code == "invalid_id"


def test_the_same_key_with_another_blob_is_another_request(world: Any) -> None:
    keep(world, "a")
    first = send(world, idempotency_key="k")
    assert send(world, idempotency_key="k").event_id == first.event_id
    refused = world.send("a", "ann", "bob", payload=b"null", idempotency_key="k")
    assert refused.code == "idempotency_conflict"


# --- the receiver


def test_an_event_is_accepted_when_it_comes_and_dealt_when_its_blob_does(named: Any) -> None:
    assert BlobsMissing() in named.read
    assert handed(named.read) == []
    assert named.acks("b", named.event) == ["accepted"]
    named.advance(120_000)
    assert handed(named.tick("b")) == []
    assert named.row("b", named.event).delivery_count == 0
    (turn,) = handed(came(named))
    assert (turn.event_id, turn.delivery_count) == (named.event, 1)
    named.settle("b", "bob", named.event, lease_id=turn.lease_id)
    named.meet()
    assert named.delivery("a", named.event).state == "processed"
    named.verify()


def test_a_blob_that_is_here_makes_nobody_wait(world: Any) -> None:
    world.listen("b", "bob")
    keep(world, "a")
    keep(world, "b")
    send(world)
    read = world.pull("b", "a")
    assert BlobsMissing() not in read
    assert len(handed(read)) == 1


def test_the_wait_outlives_the_process(named: Any) -> None:
    named.restart("b")
    assert handed(named.tick("b")) == []
    assert named.listen("b", "bob") == []
    assert len(handed(came(named))) == 1
    named.restart("b")
    assert len(named.listen("b", "bob")) == 1, "the lease goes on"


def test_a_tick_that_is_lost_is_no_arrival(named: Any) -> None:
    named.tick("b", KeepBlob(next(named.reqs), SHA, 5, written=True), lost=True)
    assert named.store("b").blob(SHA) is None
    assert named.listen("b", "bob") == []
    assert len(handed(came(named))) == 1


def test_the_wait_ends_at_the_expiry(world: Any) -> None:
    world.listen("b", "bob")
    keep(world, "a")
    event = send(world, expires_in_ms=60_000).event_id
    world.pull("b", "a")
    world.advance(60_001)
    world.tick("b")
    assert world.acks("b", event) == ["accepted", "failed: expired"]
    assert handed(came(world)) == []


def test_a_blob_that_cannot_come_fails_its_turns_and_says_why(named: Any) -> None:
    named.tick("b", BlobLost(OTHER, "blob_gone"))
    assert named.acks("b", named.event) == ["accepted"]
    named.tick("b", BlobLost(SHA, "blob_gone: a has forgotten it"))
    assert named.acks("b", named.event) == ["accepted", "failed: blob_gone: a has forgotten it"]
    assert named.row("b", named.event).delivery_count == 0


def test_a_blob_that_is_here_cannot_be_lost(named: Any) -> None:
    (turn,) = handed(came(named))
    named.nack("b", "bob", named.event, turn.lease_id)
    named.tick("b", BlobLost(SHA, "blob_gone"))
    assert named.acks("b", named.event) == ["accepted"]


@pytest.mark.parametrize("first", ["blob", "event"])
def test_an_event_that_says_another_size_means_another_content(
    open_door: Any, stranger: Any, first: str
) -> None:
    open_door.listen("b", "bob")
    event = stranger.event(payload=msgspec.Raw(b"null"), payload_ref=BlobRef(SHA, 6))
    if first == "blob":
        came(open_door)
    effects = open_door.tick("b", stranger.says(event))
    effects += came(open_door)
    assert handed(effects) == []
    assert open_door.acks("b", event.event_id) == ["accepted", f"failed: {WRONG_SIZE}"]


@pytest.mark.parametrize("blob_first", [True, False])
def test_who_waits_for_two_things_waits_for_both(named: Any, blob_first: bool) -> None:
    head = named.store("a").head()
    named.restart("b")
    named.listen("b", "bob")
    named.tick("b", LinkUp("a", (StreamHead("a", head.epoch, Seq(head.seq + 1)),)))
    steps = [lambda: came(named), lambda: named.tick("b", LinkDown("a"))]
    first, second = steps if blob_first else steps[::-1]
    assert handed(first()) == []
    assert len(handed(second())) == 1


def test_an_agent_that_comes_late_waits_for_the_blob_of_a_broadcast_too(world: Any) -> None:
    keep(world, "a")
    send(world, "*")
    world.pull("b", "a")
    world.live("b", "late")
    assert world.listen("b", "late") == []
    assert len(handed(came(world))) == 1


def test_one_blob_frees_all_that_wait_for_it(named: Any) -> None:
    send(named)
    named.sent("a", "ann", "bob")
    assert len(handed(named.pull("b", "a"))) == 1, "what names no blob is not held up"
    assert len(handed(came(named))) == 2


def test_a_reply_may_be_a_blob(named: Any) -> None:
    (turn,) = handed(came(named))
    named.listen("a", "ann")
    ref = BlobRef(SHA, 5)
    answer = named.reply("b", "bob", named.event, b"null", lease_id=turn.lease_id, payload_ref=ref)
    assert isinstance(answer, Sent)
    assert [row.event_id for row in handed(named.pull("a", "b"))] == [answer.event_id]


# --- many that wait for one


def crowd(make_world: Any, counting: Any, stranger: Any, sent: int, rows: int) -> Any:
    """So many messages wait at ``b`` for one blob; two are from ``eve``, who says another size of it."""
    world = make_world("a", limits=CourierLimits(max_depth=1_000), policy=Policy(errand_rows=rows))
    world.join("b", counting(MemoryStore(Identity(MESH, NodeId("b"), world.epoch_of("a")))))
    world.live("a", "ann")
    world.live("b", "bob")
    world.own("eve", "x")
    world.see()
    keep(world, "a")
    world.events = [send(world).event_id for _ in range(sent - 2)]
    world.pull("b", "a")
    wrong = [stranger.event(payload=msgspec.Raw(b"null"), payload_ref=BlobRef(SHA, 6)) for _ in range(2)]
    world.tick("b", stranger.says(*wrong))
    world.events += [event.event_id for event in wrong]
    world.store("b").most = 0
    return world


def ends(world: Any) -> list[Any]:
    rows = [world.row("b", event) for event in world.events]
    return [(row.state, row.error) for row in rows]


def work_off(world: Any, *, restarts: bool) -> None:
    """Until nothing is left to do. After a start a blob that has come frees once more what it had."""
    for _ in range(3 if restarts else 0):
        world.restart("b")
        world.tick("b")
    world.run_errands("b", restarts=False)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_blob_frees_no_more_in_one_tick_than_its_share(
    make_world: Any, counting: Any, stranger: Any, *, restarts: bool
) -> None:
    most, found = [], []
    for sent, rows in ((40, 10), (160, 10), (160, 1_000)):
        world = crowd(make_world, counting, deepcopy(stranger), sent, rows)
        came(world)
        assert bool(world.store("b").errands()) is (rows < sent)
        work_off(world, restarts=restarts)
        most.append(world.store("b").most)
        found.append(ends(world))
        assert len(world.listen("b", "bob", credit=900)) == sent - 2
    assert most[1] <= most[0] < most[2]
    assert found[1] == found[2]
    assert found[1] == [(TurnState.QUEUED, None)] * 158 + [(TurnState.DONE, WRONG_SIZE)] * 2


def test_while_a_blob_frees_its_turns_nobody_passes_them(
    make_world: Any, counting: Any, stranger: Any
) -> None:
    world = crowd(make_world, counting, stranger, 20, 3)
    world.listen("b", "bob", credit=900)
    hands = handed(came(world))
    late = send(world).event_id
    read = world.pull("b", "a")
    assert BlobsMissing() not in read
    hands += handed(read)
    while world.store("b").errands():
        hands += handed(world.tick("b"))
    assert [hand.event_id for hand in hands] == [*world.events[:-2], late]


@pytest.mark.parametrize("restarts", [False, True])
def test_what_a_restart_finds_of_a_blob_that_has_come_is_judged_all_the_same(
    make_world: Any, counting: Any, stranger: Any, *, restarts: bool
) -> None:
    world = crowd(make_world, counting, stranger, 20, 3)
    world.listen("b", "bob", credit=5)
    came(world)
    work_off(world, restarts=restarts)
    world.listen("b", "bob", "socket-2", credit=50)
    assert ends(world) == [(TurnState.LEASED, None)] * 18 + [(TurnState.DONE, WRONG_SIZE)] * 2


@pytest.mark.parametrize("restarts", [False, True])
def test_a_blob_that_is_lost_fails_no_more_in_one_tick_than_its_share(
    make_world: Any, counting: Any, stranger: Any, *, restarts: bool
) -> None:
    most = []
    for sent in (40, 160):
        world = crowd(make_world, counting, deepcopy(stranger), sent, 10)
        world.tick("b", BlobLost(SHA, "gone"))
        world.run_errands("b", restarts=restarts)
        most.append(world.store("b").most)
        assert ends(world) == [(TurnState.DONE, "gone")] * sent
    assert most[1] <= most[0]


@pytest.mark.parametrize("restarts", [False, True])
def test_what_comes_after_the_loss_waits_for_the_blob_anew(
    make_world: Any, counting: Any, stranger: Any, *, restarts: bool
) -> None:
    world = crowd(make_world, counting, stranger, 20, 3)
    world.tick("b", BlobLost(SHA, "gone"))
    world.advance(1)
    late = send(world).event_id
    assert BlobsMissing() in world.pull("b", "a")
    world.run_errands("b", restarts=restarts)
    assert {*ends(world)} == {(TurnState.DONE, "gone")}
    assert world.row("b", late).state is TurnState.QUEUED
    world.listen("b", "bob")
    assert [hand.event_id for hand in handed(came(world))] == [late]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_blob_that_comes_after_all_saves_what_has_not_failed(
    make_world: Any, counting: Any, stranger: Any, *, restarts: bool
) -> None:
    world = crowd(make_world, counting, stranger, 20, 3)
    world.tick("b", BlobLost(SHA, "gone"))
    came(world)
    work_off(world, restarts=restarts)
    assert ends(world)[:6] == [(TurnState.DONE, "gone")] * 6
    assert ends(world)[6:18] == [(TurnState.QUEUED, None)] * 12


# --- copies


def test_a_copy_wants_the_blobs_that_it_names(world: Any) -> None:
    world.policy = msgspec.structs.replace(world.policy, mirror=MirrorPolicy(nodes="all"))
    world.join("c", type(world.store("a"))(world.store("a").identity()))
    world.see()
    keep(world, "a")
    send(world)
    assert BlobsMissing() in world.pull("c", "a")
    assert [row.sha256 for row in world.store("c").missing_blobs(9)] == [SHA]


# --- what may go


def prune(world: Any, name: str) -> list[Any]:
    effects = world.tick(name, Prune(next(world.reqs), force=False))
    return [effect.sha256 for effect in effects if isinstance(effect, BlobDropped)]


def test_what_nobody_names_goes_after_its_grace(world: Any) -> None:
    keep(world, "a")
    world.advance(BLOB_GRACE_MS)
    assert prune(world, "a") == []
    keep(world, "a", written=False)
    world.advance(BLOB_GRACE_MS)
    assert prune(world, "a") == []
    world.advance(1)
    assert prune(world, "a") == [SHA]
    assert world.store("a").blob(SHA) is None
    assert prune(world, "a") == []


def test_a_blob_stays_while_its_event_is_owed_and_while_its_turn_is_known(world: Any) -> None:
    world.policy = msgspec.structs.replace(world.policy, retention=Retention(entries_max=1))
    for name in "ab":
        world.restart(name)
    world.listen("b", "bob")
    keep(world, "a")
    event = send(world).event_id
    (turn,) = handed(world.pull("b", "a") + came(world))
    world.rumour()
    world.advance(BLOB_GRACE_MS + 1)
    assert prune(world, "a") == [], "its delivery is open"
    world.settle("b", "bob", event, lease_id=turn.lease_id)
    world.meet()
    for _ in range(3):
        world.sent("a", "ann", "bob")
    world.meet()
    world.rumour()
    world.absent.clear()
    world.advance(BLOB_GRACE_MS + 1)
    gone = prune(world, "a")
    floor = world.store("a").floor()
    assert (gone == [SHA]) is (floor is not None and floor.seq >= 1)
    assert gone == [SHA]
    assert prune(world, "b") == [], "its turn is in the ledger"


def test_a_reply_with_a_blob_is_kept_until_it_expires(world: Any) -> None:
    world.policy = msgspec.structs.replace(
        world.policy, retention=Retention(entries_max=1), expires_in_ms=10 * BLOB_GRACE_MS
    )
    for name in "ab":
        world.restart(name)
    keep(world, "b")
    event = world.sent("a", "ann", "bob")
    world.meet()
    world.reply("b", "bob", event, b"null", payload_ref=BlobRef(SHA, 5))
    world.meet()
    world.rumour()
    world.advance(BLOB_GRACE_MS + 1)
    assert prune(world, "b") == [], "ann's node may fetch it still"
    world.advance(10 * BLOB_GRACE_MS)
    prune(world, "b")
    assert world.store("b").floor() is not None
    assert world.store("b").blob(SHA) is None


def test_an_operator_hears_of_it_while_blobs_find_no_room(world: Any) -> None:
    for _ in range(2):
        world.tick("a", BlobsFull(7, 5))
        world.tick("a", BlobsFull(9, 5))
        assert world.incidents("a") == [("blobs_full", "a")]
        world.tick("a", BlobsFit())
        assert world.incidents("a") == []
    world.tick("a", BlobsFit())
    assert world.incidents("a") == []
