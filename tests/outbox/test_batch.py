from typing import Any

import msgspec
import pytest

from outbox.batch import SealedBatch, batch_bytes, check_place, seal
from outbox.chain import Entry, Head, extend, genesis
from outbox.errors import StorageFailed
from outbox.ids import Epoch, MeshId, NodeId, Seq
from tests.appending import sealed


@pytest.fixture
def head(world: Any) -> Head:
    return genesis(world.identity.mesh, world.identity.node, world.identity.epoch)


@pytest.fixture
def batch(world: Any, head: Head) -> SealedBatch:
    return sealed(world.identity, head, [world.entry(1, 7, attempt=2), world.entry(2, 8, corr=7)], world.sign)


def test_a_batch_says_what_its_headers_say_and_ends_in_a_signed_checkpoint(
    world: Any, head: Head, batch: SealedBatch
) -> None:
    assert [
        (header.event_id, header.attempt, header.kind) for header in (draft.header for draft in batch.drafts)
    ] == [
        (world.event(7), 2, "message"),
        (world.event(8), 1, "ack"),
    ]
    assert batch.entries == (world.entry(1, 7, attempt=2), world.entry(2, 8, corr=7))
    assert batch.checkpoint == world.checkpoint(head, list(batch.entries))
    assert (batch.before, batch.checkpoint.head) == (head, extend(head, batch.entries))
    assert batch.bytes == batch_bytes(batch.entries)


def test_an_empty_batch_is_refused(world: Any, head: Head) -> None:
    with pytest.raises(StorageFailed, match="without entries"):
        seal(world.identity, head, [], world.sign)


def test_entries_that_do_not_follow_on_are_refused(world: Any, head: Head) -> None:
    with pytest.raises(StorageFailed, match="does not follow"):
        sealed(world.identity, head, [world.entry(2, 7)], world.sign)


def test_a_batch_that_follows_on_this_head_has_its_place(world: Any, head: Head, batch: SealedBatch) -> None:
    check_place(batch, world.identity, head)


@pytest.mark.parametrize("change", [{"node": NodeId("mbp")}, {"mesh": MeshId("other")}])
def test_a_batch_of_another_outbox_is_refused(
    world: Any, head: Head, batch: SealedBatch, change: dict[str, Any]
) -> None:
    with pytest.raises(StorageFailed, match="checkpoint is of"):
        check_place(batch, msgspec.structs.replace(world.identity, **change), head)


@pytest.mark.parametrize(
    "change", [{"seq": Seq(2)}, {"hash": bytes(32)}, {"epoch": Epoch("000002-0123456789ab")}]
)
def test_a_batch_on_another_head_is_refused(
    world: Any, head: Head, batch: SealedBatch, change: dict[str, Any]
) -> None:
    with pytest.raises(StorageFailed, match="does not follow"):
        check_place(batch, world.identity, msgspec.structs.replace(head, **change))


def test_a_batch_weighs_headers_and_bodies() -> None:
    assert batch_bytes([Entry(Seq(1), b"123", b"4567"), Entry(Seq(2), b"8", b"")]) == 8
